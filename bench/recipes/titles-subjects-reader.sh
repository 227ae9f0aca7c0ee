# What a title line that names the subject does where a subject is what chunks leave out. 200 questions each, on the built-in test
# model.
ragcache bench quality --tasks sections,pronouns,labels --methods auto --budgets 0,0.15 --n 200 --seed 31 --random-seeds 1 \
    --workers 2 --together --out docs/benchmarks/titles-subjects-reader.json
