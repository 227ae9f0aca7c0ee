# Time to first token at 8,192 tokens, measured a second time.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench latency --context 8192 --methods naive,fusionrag,qcfuse --recompute 0.05,0.15 --dtype float32 \
    --out docs/benchmarks/latency-8k-fp32-qwen2.5-0.5b.json
