# The committed quality table: the first seven rows of the literature at three budgets, on all tasks. It resumes.
ragcache bench quality --methods prefix,naive,link0,epic,cacheblend,fusionrag,prophetkv \
    --budgets 0.05,0.15,0.30 --n 200 --workers 2 --together --out docs/benchmarks/quality-reader.json
