# The same popular chunks again and again: what caches kept from prompts are worth, at equal shares computed. An hour or two.
python bench/studies/repeat_trace.py --threads 1 --out docs/benchmarks/repeat-trace.json
