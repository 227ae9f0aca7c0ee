# The tuned SmolLM2 by LoRA under full, independent and alternating masks: the same public questions, order and steps. RAGCACHE_DATA
# names the folder of the public files, see docs/reader.md. A step takes 20 to 30 seconds of a core, and 7 GB. It resumes. Without
# bf16 units `--dtype float32` is sooner, a minute a step: so were the adapters of `make bench/tuned-rows-smollm2-float32` made.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/masks --only-write --contexts 600
for recipe in full turborag block-attention kvlink; do
    ragcache finetune --recipe $recipe --model smollm2-tuned --data runs/masks/training.jsonl \
        --validation runs/masks/validation.jsonl --steps 75 --every 25 --seed 0 --rank 12 --rate 3e-4 --dtype bfloat16 \
        --threads 1 --out runs/masks/$recipe
done
