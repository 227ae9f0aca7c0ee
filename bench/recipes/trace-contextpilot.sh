# The trace of popular chunks beside a prefix cache, and one whose chunks ContextPilot orders first:
# `pip install --no-deps --target DIR contextpilot`, with DIR in PYTHONPATH. SmolLM2 in fp32, prompts of 1,024 tokens. Ten minutes.
model=$(python -c 'from ragcache.model.smollm2 import prepare_checkpoint; print(prepare_checkpoint())')
ragcache bench trace --shape "$model" --methods naive,prophetkv --dtype float32 --n 40 --tokens 128 \
    --peers prefix-cache,contextpilot --out docs/benchmarks/trace-contextpilot-smollm2.json
