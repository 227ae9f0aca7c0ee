# Beside `make bench/tuned-rows-smollm2`: the control, and kvlink with 5 link tokens, tuned on the same contexts, in the same order and
# steps (`make bench/finetune-smollm2`), asked the same questions in fp32. An hour of a core without bf16 units; it resumes.
python bench/studies/tuned_rows.py --model smollm2-tuned --adapter runs/masks/full --adapter runs/masks/kvlink \
    --methods full,naive,kvlink --data xquad:runs/masks/examined/xquad-examined.json \
    --data nq-open:runs/masks/examined/nq-open-examined.jsonl --n 100 --seed 31 --chunks 5 --dtype float32 --max-new-tokens 24 \
    --out docs/benchmarks/tuned-rows-smollm2-float32.json
