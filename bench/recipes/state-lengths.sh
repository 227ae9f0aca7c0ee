# Chunks of models whose layers carry a state: bytes and time to the first token by length. A minute on a quiet core.
python bench/studies/state_lengths.py --threads 1 --out docs/benchmarks/state-lengths.json
