# What a chunk's KV tells of what its reader may not read, with access labels and without.
python bench/studies/planted_secrets.py --out docs/benchmarks/planted-secrets.json
