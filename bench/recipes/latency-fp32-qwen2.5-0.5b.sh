# Time to first token, side by side with full prefill.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench latency --context 4096,8192 --methods naive,fusionrag,qcfuse --recompute 0.05,0.15 --dtype float32 \
    --out docs/benchmarks/latency-fp32-qwen2.5-0.5b.json
