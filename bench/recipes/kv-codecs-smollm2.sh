# The same answers on the tuned SmolLM2, with the tasks' twins. An hour on one core.
tasks=sections,sections-twin,pronouns,pronouns-twin,labels,labels-twin,units,units-twin
python bench/studies/kv_codecs.py --model smollm2-tuned --threads 1 --tasks $tasks --no-speed \
    --out docs/benchmarks/kv-codecs-smollm2.json
