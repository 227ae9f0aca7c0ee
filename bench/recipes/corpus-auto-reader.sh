# The demo corpus end to end, answered by the default.
ragcache bench corpus --methods auto --budgets 0 --threads 1 --out docs/benchmarks/corpus-auto-reader.json
