# Of the demo corpus with titles, and of three corpora drawn anew: what is found, and then answered right; what a look at
# sentences, and a second search with the best of them, are worth to questions that take two facts. Nearly an hour on one core.
python bench/studies/retrieval.py --sets corpus,drawn --titles both --threads 1 --out docs/benchmarks/retrieval-corpus.json
