# How soon the first token comes when `ask` begins while a search of 4 steps of 100 ms goes on. Ten minutes.
python bench/studies/early_start.py --threads 1 --out docs/benchmarks/early-start.json
