# Chunks a second while ingesting.
ragcache bench ingestion --out docs/benchmarks/ingestion-qwen2.5-0.5b.json
