# Readers tuned on invented notes, whose chunks always see each other: one in the tuned SmolLM2's own shape, and the others from it.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Interrupted, it resumes. The first takes 100 minutes on two
# cores; what it differs by from the tuned SmolLM2 is kept in bench/adapters/notes, from which the others start, half an hour in all.
# The kept one had its first sitting before half of the statements had the value first.
tuned() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 "$@"
}
if [ ! -d bench/adapters/notes ]; then
    tuned first --shape same --seed 1 --steps 550 --every 110
    tuned second --shape same --start runs/readers/first/reader --seed 11 --steps 200 --rate 5e-4 --every 100
    PYTHONPATH=bench python -m reader_tuning.difference runs/readers/second/reader --out bench/adapters/notes
fi
others="--start bench/adapters/notes --rate 5e-4"
tuned heads --shape heads --seed 2 --steps 50 $others
tuned rope --shape rope --seed 3 --steps 50 $others
tuned deep --shape deep --seed 6 --steps 50 $others
tuned qwen3 --shape qwen3 --seed 4 --steps 100 $others
