# Time to first token against context length.
ragcache bench latency --context 1024,4096,16384 --methods naive,fusionrag --out docs/benchmarks/growth-qwen2.5-0.5b.json
