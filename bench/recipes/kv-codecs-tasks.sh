# The same answers on every admitted task and its twin, by the built-in model in fp32. Half an hour on a quiet core.
tasks=sections,pronouns,labels,units,definitions,antecedents,mixed-antecedents,parts,column-units
python bench/studies/kv_codecs.py --threads 1 --dtype float32 --no-speed --n 12 \
    --tasks $tasks,$(echo $tasks | sed 's/,/-twin,/g')-twin --out docs/benchmarks/kv-codecs-tasks.json
