# Eight questions at once against one by one: the default, first tokens alone.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench throughput --method auto --recompute 0 --tokens 1 --dtype float32 --out docs/benchmarks/throughput-auto-fp32-qwen2.5-0.5b.json
