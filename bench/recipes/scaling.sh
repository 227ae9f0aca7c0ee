# Sizing on paper for a million chunks and a thousand million. Seconds.
python bench/studies/scaling.py --out docs/benchmarks/scaling.json
