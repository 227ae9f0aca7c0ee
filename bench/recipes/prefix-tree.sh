# RAGCache's tree of exact prefixes over 500 questions: what is hit at each limit, by PGDSF and by LRU, and how soon the bundled reader
# answers in fp32. A minute.
reader=$(python -c 'from ragcache import bundled; print(bundled.reader_path())')
python bench/studies/prefix_tree.py --shape "$reader" --dtype float32 --threads 1 --out docs/benchmarks/prefix-tree.json
