# Readers of other shapes, made of the mean reader of bench/recipes/notes-sittings.sh, which runs first where it has not. In training chunks
# always see each other. RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Three hours on two cores; it resumes.
# `qwen3` is tuned and not asked, for it has too much to learn again. Its committed curve ends after 100 steps, when it was stopped.
[ -d runs/readers/average/reader ] || sh -eu bench/recipes/notes-sittings.sh
tuned() {
    name=$1 shape=$2 start=$3
    shift 3
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 --shape "$shape" \
        --start "runs/readers/$start/reader" --batch 5 --rate 5e-4 "$@"
}
facts="--facts either --relations 2 4 --share 0.35 --every 50"
tuned heads heads average --seed 12 --steps 80 --every 80
tuned deep deep average $facts --seed 6 --steps 60
tuned rope-first rope average $facts --seed 3 --steps 50
tuned rope-second same rope-first --seed 13 --steps 80 --every 80
tuned rope same rope-second --seed 23 --steps 80 --every 80
tuned shallow-first shallow average $facts --seed 5 --steps 60
tuned shallow same shallow-first --seed 15 --steps 80 --every 80
tuned qwen3 qwen3 average $facts --seed 4 --steps 150
readers="average heads rope deep shallow"
for name in $readers; do
    PYTHONPATH=bench python -m reader_tuning.independent "runs/readers/$name/reader" --seed 4 --threads 2 --out "runs/readers/$name.json"
done
for seed in 1 3; do
    PYTHONPATH=bench python -m reader_tuning.independent runs/readers/average/reader --seed $seed --threads 2 --out runs/readers/average-$seed.json
done
others="average-1 average-3 rope-first rope-second shallow-first qwen3"
PYTHONPATH=bench python -m reader_tuning.curves runs/readers $readers $others --out docs/benchmarks/shapes.json
