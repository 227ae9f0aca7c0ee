# SmolLM2-135M-Instruct by LoRA under full, independent and alternating masks: the same public questions, order and steps.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Not run yet: single contexts took
# 4 to 8 seconds of a core each, so some two hours a mask, and 3.5 GB. It resumes.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/masks --only-write --contexts 600
for recipe in full turborag block-attention; do
    ragcache finetune --recipe $recipe --model smollm2 --data runs/masks/training.jsonl \
        --validation runs/masks/validation.jsonl --steps 300 --every 50 --seed 0 --rank 12 --dtype bfloat16 --threads 1 \
        --out runs/masks/$recipe
done
