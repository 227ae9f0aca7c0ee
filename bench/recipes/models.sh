# Which architectures of the installed transformers work? Every decoder class, as a small model; writes docs/models.md.
python bench/studies/models.py --threads 1 --out docs/benchmarks/models.json --page docs/models.md
