# The demo corpus end to end: retrieval and reading.
ragcache bench corpus --methods full,naive,cacheblend,fusionrag,prophetkv --budgets 0.30 --threads 1 \
    --out docs/benchmarks/corpus-reader.json
