# Random damage to every kind of file of an index: found, or harmless? Half an hour on a quiet core.
python bench/studies/damage.py --out docs/benchmarks/damage.json
