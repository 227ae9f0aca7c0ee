# From one short chunk to many long ones: is reuse ever slower? On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench latency --chunk 32,64,128,256,512 --chunks 1,2,4,8,16 --methods auto --recompute 0 --dtype float32 \
    --out docs/benchmarks/grid-fp32-qwen2.5-0.5b.json
