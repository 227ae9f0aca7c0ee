# The same popular chunks, combined and ordered differently each time. On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench trace --methods naive,fusionrag --dtype float32 --out docs/benchmarks/trace-fp32-qwen2.5-0.5b.json
