# The default's encoding against FusionRAG's, on all tasks.
python bench/studies/compositions.py --tasks all --methods in-document --controls full,naive,fusionrag \
    --than fusionrag --budgets 0.05,0.15 --n 200 --seed 0 --workers 2 --out docs/benchmarks/in-document-reader.json
