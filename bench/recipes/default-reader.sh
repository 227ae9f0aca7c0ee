# The default on held-out questions.
python bench/studies/compositions.py --methods auto,prophetkv --budgets 0,0.05,0.15 --n 380 --seed 11 \
    --workers 2 --out docs/benchmarks/default-reader.json
