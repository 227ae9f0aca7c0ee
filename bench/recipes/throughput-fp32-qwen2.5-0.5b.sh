# Eight questions at once against one by one: `fusionrag`, answers of 16 tokens.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench throughput --method fusionrag --tokens 16 --dtype float32 --out docs/benchmarks/throughput-fp32-qwen2.5-0.5b.json
