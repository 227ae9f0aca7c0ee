# RAGCache's tree over the first 500 of RAGPulse's questions (see `bench/recorded-trace`), by PGDSF and by LRU; times are of the bundled
# reader in fp32. A minute.
reader=$(python -c 'from ragcache import bundled; print(bundled.reader_path())')
python bench/studies/prefix_tree.py --data "ragpulse:$RAGPULSE" --shape "$reader" --dtype float32 --chunks 6 --tokens 256 \
    --threads 1 --out docs/benchmarks/prefix-tree-ragpulse.json
