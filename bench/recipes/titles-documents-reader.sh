# What a title line in the chunk does on tasks that no title mends: long documents about several subjects under one title.
# 200 questions each, on the built-in test model. Hours on two cores, FusionRAG's neighbours
# most of it; it resumes.
ragcache bench quality --tasks definitions,antecedents,mixed-antecedents,parts,column-units \
    --methods fusionrag,prophetkv,auto,prophetkv+title,auto+title --budgets 0,0.05,0.15 --n 200 --seed 31 --random-seeds 1 \
    --workers 2 --together --out docs/benchmarks/titles-documents-reader.json
python bench/studies/kept.py docs/benchmarks/titles-documents-reader.jsonl --of full+title --beside naive+title \
    --out docs/benchmarks/titles-documents-kept-reader.json
