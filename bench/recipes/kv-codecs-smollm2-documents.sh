# The same on the five tasks of long documents, and fewer questions of their twins. Two and a half hours of a core.
tasks=definitions,antecedents,mixed-antecedents,parts,column-units
python bench/studies/kv_codecs.py --model smollm2-tuned --threads 1 --dtype float32 --no-speed --n 12 --tasks $tasks \
    --out docs/benchmarks/kv-codecs-smollm2-documents.json
python bench/studies/kv_codecs.py --model smollm2-tuned --threads 1 --dtype float32 --no-speed --n 6 \
    --tasks $(echo $tasks | sed 's/,/-twin,/g')-twin --out docs/benchmarks/kv-codecs-smollm2-documents-twins.json
