# Whether a tenant of the server can tell another one's documents: by hits, by ids, by time.
python bench/studies/tenant_probes.py --out docs/benchmarks/tenant-probes.json
