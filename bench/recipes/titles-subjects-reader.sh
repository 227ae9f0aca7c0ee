# What a title line that names the subject does where a subject is what chunks leave out, where the chunk that names it is not
# retrieved, and where the document misleads. 200 questions each, on the built-in test model. It resumes.
ragcache bench quality --tasks sections,pronouns,labels,sections-bare,sections-misled \
    --methods fusionrag,prophetkv,auto,fusionrag+title,prophetkv+title,auto+title --budgets 0,0.05,0.15 --n 200 --seed 31 \
    --random-seeds 1 --workers 2 --together --out docs/benchmarks/titles-subjects-reader.json
python bench/studies/kept.py docs/benchmarks/titles-subjects-reader.jsonl --of full+title --beside naive+title \
    --tasks sections,pronouns,labels --out docs/benchmarks/titles-subjects-kept-reader.json
