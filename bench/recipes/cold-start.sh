# How long `ragcache ask` is in a process of its own, and how long it was before its lean start and embedding. Three minutes.
python bench/studies/cold_start.py --out docs/benchmarks/cold-start.json
