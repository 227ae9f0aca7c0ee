# SmolLM2 as it is and tuned, on public questions that nothing was tuned on: five passages each.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. It resumes.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --only-write
examined() {
    ragcache bench quality --model "$1" --data "$2:runs/smollm2/examined/$3" --dtype bfloat16 --chunks 5 --n 200 \
        --max-new-tokens 24 --methods prefix,cacheblend,fusionrag,prophetkv,auto --budgets 0.15 --random-seeds 2 \
        --workers 2 --together --out "docs/benchmarks/$2-$1.json"
}
for model in smollm2-tuned smollm2; do
    examined $model xquad xquad-examined.json
    examined $model nq-open nq-open-examined.jsonl
done
