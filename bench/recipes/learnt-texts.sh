# 60 questions over chunks that nobody ingested, through `ragcache serve --learn`: what is reused, how soon, and how right.
python bench/studies/learnt_texts.py --questions 60 --threads 1 --out docs/benchmarks/learnt-texts.json
