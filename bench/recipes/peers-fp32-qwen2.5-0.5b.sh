# Time to first token beside llama.cpp.
# `pip install -c constraints.txt -e '.[peers]'` compiles llama.cpp first.
# On a processor with neither matrix nor bf16 instructions; hours.
ragcache bench latency --context 4096 --methods naive,fusionrag --peers llama.cpp:q8_0 --dtype float32 \
    --out docs/benchmarks/peers-fp32-qwen2.5-0.5b.json
