# SmolLM2 as it is and tuned, on public questions that nothing was tuned on: five passages each.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. It resumes.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --only-write
examined() {
    model=$1 name=$2
    shift 2
    ragcache bench quality --model "$model" "$@" --dtype bfloat16 --chunks 5 --n 200 --max-new-tokens 24 \
        --methods prefix,cacheblend,fusionrag,prophetkv,auto --budgets 0.15 --random-seeds 2 --workers 2 --together \
        --out "docs/benchmarks/$name-$model.json"
}
for model in smollm2-tuned smollm2; do
    examined $model xquad --data xquad:runs/smollm2/examined/xquad-examined.json
    examined $model nq-open --data nq-open:runs/smollm2/examined/nq-open-examined.jsonl
done
ircot=$RAGCACHE_DATA/ircot
examined smollm2-tuned multihop --data "hotpotqa:$ircot/hotpotqa.txt" --data "2wiki:$ircot/2wikimultihopqa.txt" \
    --data "musique:$ircot/musique.txt"
