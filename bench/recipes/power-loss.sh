# Ingestion, replacement and removal lose power behind every step, in three ways each. A few minutes.
python bench/studies/store_faults.py --n 0 --no-kills --power --out docs/benchmarks/power-loss.json
