# 60 questions over chunks that nobody ingested, through `ragcache serve --learn`: what is reused, how soon, and how right; the
# default, and nothing recomputed. ContextPilot orders the chunks for a prefix cache beside them:
# `pip install --no-deps --target DIR contextpilot`, with DIR in PYTHONPATH.
python bench/studies/learnt_texts.py --questions 60 --threads 1 --out docs/benchmarks/learnt-texts.json
python bench/studies/learnt_texts.py --questions 60 --threads 1 --method naive --out docs/benchmarks/learnt-texts-naive.json
