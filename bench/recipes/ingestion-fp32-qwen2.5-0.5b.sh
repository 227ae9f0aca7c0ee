# Chunks a second while ingesting.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench ingestion --n 12 --dtype float32 --out docs/benchmarks/ingestion-fp32-qwen2.5-0.5b.json
