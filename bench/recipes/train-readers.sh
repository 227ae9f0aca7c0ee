# Readers of other shapes, made of the tuned SmolLM2 and tuned on invented notes, whose chunks always see each other:
# one in the same shape, and the others from it. RAGCACHE_DATA names the folder of the public files, see docs/reader.md.
# Two hours on two cores. Interrupted, it resumes.
tuned() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 \
        --shape "$name" "$@"
}
tuned same --seed 1 --steps 550 --every 110
others="--start runs/readers/same/reader --rate 5e-4"
tuned heads --seed 2 --steps 50 $others
tuned rope --seed 3 --steps 50 $others
tuned deep --seed 6 --steps 50 $others
tuned qwen3 --seed 4 --steps 100 $others
