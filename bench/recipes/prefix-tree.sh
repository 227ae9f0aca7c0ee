# RAGCache's tree of exact prefixes over 500 questions: what is hit at each limit, by PGDSF and by LRU, and how soon. Half an hour.
python bench/studies/prefix_tree.py --threads 1 --out docs/benchmarks/prefix-tree.json
