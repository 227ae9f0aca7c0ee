# RAGPulse, a week of a university's questions (MIT, 3 MB: `git clone https://github.com/flashserve/RAGPulse`; RAGPULSE names its
# folder `data`), by caches of equal bytes: what each finds of all questions, and how soon 24 of them are answered. ContextPilot:
# `pip install --no-deps --target DIR contextpilot`, with DIR in PYTHONPATH. SmolLM2 in fp32. Half an hour on one core; it resumes.
model=$(python -c 'from ragcache.model.smollm2 import prepare_checkpoint; print(prepare_checkpoint())')
python bench/studies/recorded_trace.py --data "ragpulse:$RAGPULSE" --shape "$model" --dtype float32 --threads 1 \
    --out docs/benchmarks/recorded-trace.json
