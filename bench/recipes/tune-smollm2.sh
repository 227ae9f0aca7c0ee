# Tunes SmolLM2-135M-Instruct by LoRA to answer from several passages: two hours on one core. It resumes.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. The adapter takes the place of the one shipped.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --steps 800
cp runs/smollm2/adapter/* ragcache/bundled/adapter/
cp runs/smollm2/log.jsonl ragcache/bundled/adapter/curve.jsonl
