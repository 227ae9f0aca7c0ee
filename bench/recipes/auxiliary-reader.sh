# The sibling's choice of tokens and the answers by it, before and after tuning (CacheClip's first version), on families of questions
# that it was not tuned on: 30 questions of each of seven tasks that need other chunks, 50 of each of two twins. It resumes.
# Not run to its end yet: what is committed is of sections, pronouns, labels and units, by --tasks.
python bench/studies/auxiliary.py --n 30 --twins 50 --seed 41 --out docs/benchmarks/auxiliary-reader.json
