# 1,000 seeded runs over a disk that fails, and a kill behind every step of ingestion and removal. A few minutes.
python bench/studies/store_faults.py --out docs/benchmarks/store-faults.json
