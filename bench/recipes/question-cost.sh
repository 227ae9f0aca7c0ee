# What a question costs, and from how many questions on a chunk's prefill pays. Ten minutes.
python bench/studies/question_cost.py --threads 1 --out docs/benchmarks/question-cost.json
