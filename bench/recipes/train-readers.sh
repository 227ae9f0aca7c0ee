# Readers of other shapes, made of the mean reader of bench/recipes/notes-sittings.sh, which runs first where it has not: their chunks always see
# each other too. RAGCACHE_DATA names the folder of the public files, see docs/reader.md. An hour on two cores; it resumes. Not among them is
# `qwen3`, which has to learn too much again: its committed curve is of 100 steps of 150, with --seed 4.
[ -d runs/readers/average/reader ] || sh -eu bench/recipes/notes-sittings.sh
shaped() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 --shape "$name" \
        --start runs/readers/average/reader --facts either --relations 2 4 --share 0.35 --batch 5 --rate 5e-4 --every 50 "$@"
}
shaped heads --seed 2 --steps 50
shaped rope --seed 3 --steps 50
shaped deep --seed 6 --steps 60
shaped shallow --seed 5 --steps 60
PYTHONPATH=bench python -m reader_tuning.curves runs/readers heads rope deep shallow --out docs/benchmarks/shapes.json
