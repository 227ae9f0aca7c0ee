# Prefilling a slow search's provisional chunks while it goes on: what is gained, and what is thrown away. Ten minutes.
python bench/studies/speculation.py --threads 1 --out docs/benchmarks/speculation.json
