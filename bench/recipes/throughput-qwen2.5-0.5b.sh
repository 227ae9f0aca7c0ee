# Eight questions at once against one by one.
ragcache bench throughput --method fusionrag --tokens 1,16 --out docs/benchmarks/throughput-qwen2.5-0.5b.json
