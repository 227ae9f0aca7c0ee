# The same for the default.
ragcache bench corpus --methods auto --budgets 0 --threads 1 --out docs/benchmarks/corpus-auto-reader.json
