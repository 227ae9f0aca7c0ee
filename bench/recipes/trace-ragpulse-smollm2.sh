# RAGPulse's requests (MIT, 3 MB: `git clone https://github.com/flashserve/RAGPulse`; RAGPULSE names its folder `data`), each
# passage cut to 128 tokens, beside a prefix cache, and one whose chunks ContextPilot orders first (see `bench/trace-contextpilot-smollm2`),
# at equal bytes. SmolLM2 in fp32. A quarter of an hour on one core.
model=$(python -c 'from ragcache.model.smollm2 import prepare_checkpoint; print(prepare_checkpoint())')
ragcache bench trace --data "ragpulse:$RAGPULSE" --shape "$model" --methods naive,auto,fusionrag --dtype float32 --n 20 \
    --tokens 128 --cache-sizes 0.1,1 --peers prefix-cache,contextpilot --threads 1 \
    --out docs/benchmarks/trace-ragpulse-smollm2.json
