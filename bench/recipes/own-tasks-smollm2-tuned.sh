# The tuned SmolLM2 on three of our own tasks that need other chunks, with and without titles. An hour on one core; it resumes.
ragcache bench quality --model smollm2-tuned --tasks sections,pronouns,labels --methods fusionrag,prophetkv,auto --budgets 0.15 \
    --n 70 --seed 31 --random-seeds 1 --dtype bfloat16 --max-new-tokens 24 --threads 1 --workers 1 --together \
    --out docs/benchmarks/own-tasks-smollm2-tuned.json
