# The control of `make bench/tuned-rows-smollm2`: the same contexts, order and steps under ordinary attention (`make
# bench/finetune-smollm2`), asked the same questions in fp32. An hour of a core without bf16 units; it resumes.
python bench/studies/tuned_rows.py --model smollm2-tuned --adapter runs/masks/full --methods full,naive \
    --data xquad:runs/masks/examined/xquad-examined.json --data nq-open:runs/masks/examined/nq-open-examined.jsonl \
    --n 100 --seed 31 --chunks 5 --dtype float32 --max-new-tokens 24 --out docs/benchmarks/tuned-rows-smollm2-control.json
