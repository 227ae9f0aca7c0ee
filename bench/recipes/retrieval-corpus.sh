# Of the demo corpus with titles: what a second search with the best sentence found is worth to questions that take two facts.
python bench/studies/retrieval.py --sets corpus --titles both --threads 1 --out docs/benchmarks/retrieval-corpus.json
