# A limit for the KV on the disk: hits and work saved by what goes first, over 2,000 questions. A minute.
python bench/studies/kv_eviction.py --out docs/benchmarks/kv-eviction.json
