# Which of the tasks that no title mends need other chunks at all? 200 questions each, and their twins, on the built-in test model.
# An hour on two cores; it resumes, and takes the answers of `make bench/titles-documents-reader` where they are there.
ragcache bench admit --tasks definitions,antecedents,mixed-antecedents,parts,column-units --n 200 --seed 31 --random-seeds 1 \
    --workers 2 --answers docs/benchmarks/titles-documents-reader.jsonl --out docs/benchmarks/admission-documents-reader.json
