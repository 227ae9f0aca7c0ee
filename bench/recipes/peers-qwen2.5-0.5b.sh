# Time to first token beside llama.cpp and a prefix cache.
# `pip install -c constraints.txt -e '.[peers]'` compiles llama.cpp first.
ragcache bench latency --context 4096 --methods naive,fusionrag --peers prefix-cache,llama.cpp:q8_0 \
    --out docs/benchmarks/peers-qwen2.5-0.5b.json
