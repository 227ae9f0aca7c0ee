# The same popular chunks, combined and ordered differently each time.
ragcache bench trace --methods naive,fusionrag --out docs/benchmarks/trace-qwen2.5-0.5b.json
