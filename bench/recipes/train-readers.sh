# Readers of other shapes, made of the tuned SmolLM2 and tuned on invented notes, whose chunks always see each other.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Interrupted, it resumes.
seed=1
for shape in same heads rope qwen3 shallow deep; do
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$shape" --shape $shape \
        --steps 300 --seed $seed
    seed=$((seed + 1))
done
