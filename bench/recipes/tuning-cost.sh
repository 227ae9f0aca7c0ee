# What tuning for reading cost SmolLM2 on ordinary prompts and plain text.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --only-write
python bench/studies/tuning_cost.py --texts runs/smollm2/examined/nq-open-examined.jsonl \
    --out docs/benchmarks/tuning-cost.json
