# Readers tuned on invented notes, whose chunks always see each other: one in the tuned SmolLM2's own shape, and the others from it.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Interrupted, it resumes. What the first differs by from the
# tuned SmolLM2 is kept in bench/readers/notes; remove that folder to make it again, in two hours on two cores. In its first sitting
# a fifth of the statements had the value first, not half, and in its first two half of the notes were dense, not seven in ten.
tuned() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 "$@"
}
if [ ! -d bench/readers/notes ]; then
    tuned first --shape same --seed 1 --steps 550 --every 110
    tuned second --shape same --start runs/readers/first/reader --seed 11 --steps 200 --rate 5e-4 --every 100
    tuned third --shape same --start runs/readers/second/reader --seed 12 --steps 300 --batch 2 --rate 5e-4 --every 300
    PYTHONPATH=bench python -m reader_tuning.difference runs/readers/third/reader --out bench/readers/notes
fi
PYTHONPATH=bench python -m reader_tuning.independent bench/readers/notes --threads 2 --out docs/benchmarks/notes-independent.json
others="--start bench/readers/notes --rate 5e-4"
tuned heads --shape heads --seed 2 --steps 50 $others
tuned rope --shape rope --seed 3 --steps 50 $others
tuned deep --shape deep --seed 6 --steps 50 $others
tuned qwen3 --shape qwen3 --seed 4 --steps 100 $others
