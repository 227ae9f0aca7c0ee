# Time to first token against context length. On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench latency --context 1024,4096,16384 --methods naive,fusionrag --dtype float32 --out docs/benchmarks/growth-fp32-qwen2.5-0.5b.json
