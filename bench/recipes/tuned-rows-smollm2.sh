# SmolLM2 tuned under independent and alternating masks and with link tokens (`make bench/finetune-smollm2`) on public questions: five
# passages each, of one article or with distractors. An hour on one core; it resumes. The committed control has a table of its own.
for recipe in turborag block-attention kvlink; do adapters="$adapters --adapter runs/masks/$recipe"; done
python bench/studies/tuned_rows.py --model smollm2-tuned $adapters --data xquad:runs/masks/examined/xquad-examined.json \
    --data nq-open:runs/masks/examined/nq-open-examined.jsonl --n 100 --seed 31 --chunks 5 --dtype bfloat16 \
    --max-new-tokens 24 --out docs/benchmarks/tuned-rows-smollm2.json
