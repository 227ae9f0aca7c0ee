# The same popular chunks again and again: what caches kept from prompts are worth, at equal shares computed. Half an hour on a
# quiet core. The second trace, whose facts stand behind a header, has not been run yet. It resumes.
python bench/studies/repeat_trace.py --tasks trace --threads 1 --out docs/benchmarks/repeat-trace.json
python bench/studies/repeat_trace.py --tasks bound --threads 1 --out docs/benchmarks/repeat-trace-bound.json
