# Does a second look at the first token tell when the default follows a document that misleads?
python bench/studies/trust.py --n 120 --threads 1 --out docs/benchmarks/trust.json
