# What a title line in the chunk does, beside the methods, on tasks that need other chunks: some that a title mends, some that none
# does, and two where the document is left out or misleads. 200 questions each, on the built-in test model.
# Not run to its end yet: on two cores it takes hours. It resumes. What was run of it: titles-documents and titles-subjects.
ragcache bench quality \
    --tasks definitions,antecedents,mixed-antecedents,parts,column-units,sections,pronouns,labels,sections-bare,sections-misled \
    --methods fusionrag,prophetkv,auto,fusionrag+title,prophetkv+title --budgets 0,0.05,0.15 \
    --n 200 --seed 31 --random-seeds 1 --workers 2 --together --out docs/benchmarks/titles-reader.json
