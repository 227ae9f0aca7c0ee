# A text that two documents have: does an answer follow the one that the question is about?
python bench/studies/equal_texts.py --out docs/benchmarks/equal-texts.json
