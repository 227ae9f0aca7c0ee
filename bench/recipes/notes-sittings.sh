# A reader of invented notes, tuned in sittings from the tuned SmolLM2; its chunks always see each other. It resumes.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. The first three sittings are kept as an adapter in
# bench/readers/notes: remove that folder to make it again, two hours on two cores; the later ones take another two.
# The committed figures of the first three are of a sitting in which a fifth of the statements had the value first, not half, and of two in
# which half of the notes were dense, not seven in ten. Those of the later ones began with the reader that the adapter was taken from;
# in their `fourth` three contexts in five told one thing of each subject, not half, and the curves of `fourth` and `fifth` ask
# other questions.
tuned() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 --shape same "$@"
}
kept() {
    PYTHONPATH=bench python -m reader_tuning.difference "$@"
}
reader=runs/readers
if [ ! -d bench/readers/notes ]; then
    tuned first --seed 1 --steps 550 --every 110
    tuned second --start $reader/first/reader --seed 11 --steps 200 --rate 5e-4 --every 100
    tuned third --start $reader/second/reader --seed 12 --steps 300 --batch 2 --rate 5e-4 --every 300
    kept $reader/third/reader --out bench/readers/notes
fi
PYTHONPATH=bench python -m reader_tuning.independent bench/readers/notes --threads 2 --out docs/benchmarks/notes-independent.json
either="--facts either --relations 2 4"
tuned fourth --start bench/readers/notes --facts value-first --relations 1 2 --seed 21 --steps 180 --batch 8 --every 90
tuned fifth --start $reader/fourth/reader $either --seed 31 --steps 100 --batch 6 --every 50
tuned sixth --start $reader/fifth/reader --seed 24 --steps 110 --rate 4e-4 --every 110
tuned seventh --start $reader/fifth/reader $either --share 0.5 --seed 25 --steps 170 --batch 5 --rate 5e-4 --every 170
PYTHONPATH=bench python -m reader_tuning.average $reader/seventh/reader $reader/sixth/reader --out $reader/average/reader
tuned eighth --start $reader/average/reader $either --share 0.35 --seed 26 --steps 105 --batch 5 --rate 4e-4 --every 105
kept $reader/average/reader --out $reader/average-12/reader
kept $reader/eighth/reader --out $reader/eighth-12/reader
kept $reader/eighth/reader --rank 24 --out $reader/eighth-24/reader
sittings="fourth fifth sixth seventh average average-12 eighth eighth-12 eighth-24"
for name in $sittings; do
    PYTHONPATH=bench python -m reader_tuning.independent $reader/$name/reader --threads 2 --out $reader/$name.json
done
PYTHONPATH=bench python -m reader_tuning.curves $reader $sittings --out docs/benchmarks/notes-sittings.json
