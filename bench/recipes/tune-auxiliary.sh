# Tunes the built-in test model's sibling to choose the tokens that the test model itself would recompute: CacheClip's first
# version, by LoRA on invented notes: some minutes on a core of its own. It resumes. The adapter takes the place of the one
# shipped, and `make bench/auxiliary-reader` measures it.
PYTHONPATH=bench python -m auxiliary_tuning --out runs/auxiliary
cp runs/auxiliary/adapter/* ragcache/bundled/sibling-tuned/
cp runs/auxiliary/log.jsonl ragcache/bundled/sibling-tuned/curve.jsonl
