# Codecs of stored KV: bytes, speed of decoding, error, and answers on the admitted tasks. Ten minutes on a quiet core.
python bench/studies/kv_codecs.py --threads 1 --out docs/benchmarks/kv-codecs.json
