# Readers of other shapes, made of the tuned SmolLM2 and tuned on invented notes, whose chunks always see each other:
# one in the same shape, in two sittings, and the others from it. RAGCACHE_DATA names the folder of the public files, see
# docs/reader.md. Interrupted, it resumes. Never run from end to end: the reader that docs/reader.md tells of had two sittings
# like these two on an earlier mix of notes, and 320 steps at 3e-4, 300 at 2.5e-4 and 50 at 2e-4 as the notes became what
# they are. `heads`, `rope`, `deep` and `qwen3` were made of the mean of it after 320 and after 300 more, and had their steps in two
# or three sittings too: 50 and 50; for `qwen3`, 60, 90 and 60.
tuned() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 "$@"
}
tuned first --shape same --seed 1 --steps 300 --rate 4e-4
tuned same --shape same --start runs/readers/first/reader --seed 11 --steps 260 --rate 3e-4
others="--start runs/readers/same/reader --rate 2e-4"
tuned heads --shape heads --seed 2 --steps 100 $others
tuned rope --shape rope --seed 3 --steps 100 $others
tuned deep --shape deep --seed 6 --steps 100 $others
tuned qwen3 --shape qwen3 --seed 4 --steps 210 $others
tuned shallow --shape shallow --seed 5 --steps 60 $others
