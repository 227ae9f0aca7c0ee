# A title as a line, or as a sentence that the test model was trained on: what naive reuse makes of either. Three minutes on one core.
python bench/studies/title_wordings.py --n 100 --seed 31 --out docs/benchmarks/title-wordings.json
