# 2,000 chunks on Ray: a worker killed, a poisoned document, a node of a cluster lost. A few minutes, in .venv-ray: `make ray-check` makes it.
make ray-check
.venv-ray/bin/python bench/studies/ray_ingestion.py --out docs/benchmarks/ray-ingestion.json
