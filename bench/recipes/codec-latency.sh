# The first token by codec and by where KV is, in the shape of a 0.5B model, beside full prefill. Ten minutes on a quiet core.
python bench/studies/codec_latency.py --threads 1 --dtype float32 --out docs/benchmarks/codec-latency.json
