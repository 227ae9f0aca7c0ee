# The trace of popular chunks beside a prefix cache, and one whose chunks ContextPilot orders first:
# `pip install --no-deps --target DIR contextpilot`, with DIR in PYTHONPATH. In fp32, prompts of 1,024 tokens. Ten minutes.
ragcache bench trace --methods naive,prophetkv,fusionrag --dtype float32 --n 60 --tokens 128 --peers prefix-cache,contextpilot \
    --threads 1 --out docs/benchmarks/trace-contextpilot-fp32-qwen2.5-0.5b.json
