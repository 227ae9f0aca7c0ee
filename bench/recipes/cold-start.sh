# How long `ragcache ask` is in a process of its own, with and without its lean start. Five minutes.
python bench/studies/cold_start.py --out docs/benchmarks/cold-start.json
