# Eight questions at once against one by one: `epic`, first tokens alone.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench throughput --method epic --tokens 1 --dtype float32 --out docs/benchmarks/throughput-epic-fp32-qwen2.5-0.5b.json
