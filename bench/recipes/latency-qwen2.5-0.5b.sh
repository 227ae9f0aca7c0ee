# Time to first token, side by side with full prefill and a prefix cache.
ragcache bench latency --context 4096,8192 --methods naive,fusionrag,prophetkv --recompute 0.05,0.15,0.30 \
    --peers prefix-cache --out docs/benchmarks/latency-qwen2.5-0.5b.json
