# The same of the demo corpus alone, and what a second search with the best sentence found is worth there.
python bench/studies/retrieval.py --sets corpus --threads 1 --out docs/benchmarks/retrieval-corpus.json
