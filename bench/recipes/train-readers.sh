# Readers of other shapes, made of the mean reader of bench/recipes/notes-sittings.sh, which runs first where it has not: their chunks always see
# each other too. RAGCACHE_DATA names the folder of the public files, see docs/reader.md. An hour on two cores; it resumes.
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
shaped qwen3 --seed 4 --steps 150
PYTHONPATH=bench python -m reader_tuning.curves runs/readers heads rope deep qwen3 --out docs/benchmarks/shapes.json
