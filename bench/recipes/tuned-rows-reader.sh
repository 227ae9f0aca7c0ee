# The bundled reader's siblings, tuned to read chunks apart, beside it: tasks that need other chunks, and their twins. The control
# `full` comes from `make bench/finetune-reader`. An hour and a half on one core; it resumes.
python bench/studies/tuned_rows.py --model bundled --adapter bench/adapters/turborag --adapter bench/adapters/block-attention \
    --adapter bench/adapters/kvlink --adapter runs/siblings/full --n 23 --seed 31 --dtype float32 \
    --tasks sections,pronouns,labels,units,definitions,antecedents,mixed-antecedents,parts,column-units,sections-twin,pronouns-twin,labels-twin,units-twin,definitions-twin,antecedents-twin,mixed-antecedents-twin,parts-twin,column-units-twin \
    --out docs/benchmarks/tuned-rows-reader.json
