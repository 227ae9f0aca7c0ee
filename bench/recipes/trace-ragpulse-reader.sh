# The first 200 of RAGPulse's questions (see `bench/recorded-trace`) answered one after the other, with caches that begin empty but
# for what was ingested: rows that keep KV of prompts beside those that ingest, a prefix cache, and one in ContextPilot's order. The
# bundled reader in fp32. Half an hour on one core; it resumes.
reader=$(python -c 'from ragcache import bundled; print(bundled.reader_path())')
ragcache bench trace --data "ragpulse:$RAGPULSE" --shape "$reader" --methods naive,auto,prophetkv,cachecraft,ragcache \
    --recompute 0.15 --dtype float32 --n 200 --tokens 512 --cache-sizes 0.1,1 --peers prefix-cache,contextpilot --threads 1 \
    --out docs/benchmarks/trace-ragpulse-reader.json
