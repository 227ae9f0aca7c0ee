# The default chosen again, on the tuned SmolLM2: left contexts, layers and shares on validation questions, then the
# default's shares on examined ones. RAGCACHE_DATA names the folder of the public files, see docs/reader.md. It resumes.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --only-write
study="python bench/studies/left_contexts.py"
xquad="--chunks 5 --data xquad:runs/smollm2"
nq_open="--chunks 5 --data nq-open:runs/smollm2"
own="--tasks sections,pronouns,labels"
$study --compare contexts $xquad/validation/xquad-validation.json --n 48 --out docs/benchmarks/contexts-xquad.json
$study --compare contexts $nq_open/validation/nq-open-validation.jsonl --n 48 --out docs/benchmarks/contexts-nq-open.json
$study --compare contexts $own --n 20 --out docs/benchmarks/contexts-own-tasks.json
shares="--budgets 0.05,0.10,0.15"
$study --compare layers $shares $xquad/validation/xquad-validation.json --n 90 --out docs/benchmarks/layers-xquad.json
$study --compare layers $shares $nq_open/validation/nq-open-validation.jsonl --n 90 --out docs/benchmarks/layers-nq-open.json
$study --compare layers $shares $own --n 20 --out runs/layers-own-tasks.json  # of which only a part was run
shares="--budgets 0,0.05,0.15"
$study --compare share $shares --seed 0 $xquad/examined/xquad-examined.json --n 200 --out docs/benchmarks/share-xquad.json
$study --compare share $shares --seed 0 $nq_open/examined/nq-open-examined.jsonl --n 200 --out docs/benchmarks/share-nq-open.json
$study --compare share $shares --seed 31 $own --n 48 --out docs/benchmarks/share-own-tasks.json
both() { echo "$1=docs/benchmarks/contexts-$2.jsonl:$3/layers-$2.jsonl"; }
python bench/studies/default_choice.py "$(both XQuAD xquad docs/benchmarks)" "$(both NQ-open nq-open docs/benchmarks)" \
    "$(both "our tasks" own-tasks runs)" --out docs/benchmarks/default-choice.json
