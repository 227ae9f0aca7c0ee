# Four processes ingest overlapping folders, one removes, two ask, for ten minutes; then all is held against each other.
python bench/studies/many_processes.py --minutes 10 --out docs/benchmarks/many-processes.json
