# From one short chunk to many long ones: is reuse ever slower?
ragcache bench latency --chunk 32,64,128,256,512 --chunks 1,2,4,8,16 --methods auto --recompute 0 \
    --out docs/benchmarks/grid-qwen2.5-0.5b.json
