# Every row of the table on every task.
ragcache bench sweep --admission docs/benchmarks/admission-reader.json \
    --methods full,prefix,naive,random,epic,link0,ape,sel,cacheblend,cacheblend-v,cacheblend-gradual,droidspeak,psr,cacheclip,prophetkv,infoflow,fusionrag,psr-fused,in-document \
    --budgets 0,0.05,0.15 --n 16 --seed 7 --workers 2 --out docs/benchmarks/rows-reader.json
