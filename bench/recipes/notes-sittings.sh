# What further sittings teach the reader of invented notes that is kept in bench/readers/notes: two hours on two cores. It resumes.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md. The committed figures began with the reader that the kept
# adapter was taken from. `fifth` begins where `fourth` ended, `sixth` and `seventh` where `fifth` did. In their `fourth`
# three contexts in five told one thing of each subject, not half, and the curves of `fourth` and `fifth` ask other questions.
tuned() {
    name=$1 start=$2
    shift 2
    PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out "runs/readers/$name" --threads 2 --shape same \
        --start "$start" "$@"
}
reader=runs/readers
either="--facts either --relations 2 4"
tuned fourth bench/readers/notes --facts value-first --relations 1 2 --seed 21 --steps 180 --batch 8 --every 90
tuned fifth $reader/fourth/reader $either --seed 31 --steps 100 --batch 6 --every 50
tuned sixth $reader/fifth/reader --seed 24 --steps 110 --rate 4e-4 --every 110
tuned seventh $reader/fifth/reader $either --share 0.5 --seed 25 --steps 170 --batch 5 --rate 5e-4 --every 170
PYTHONPATH=bench python -m reader_tuning.average $reader/seventh/reader $reader/sixth/reader --out $reader/average/reader
tuned eighth $reader/average/reader $either --share 0.35 --seed 26 --steps 105 --batch 5 --rate 4e-4 --every 105
PYTHONPATH=bench python -m reader_tuning.difference $reader/average/reader --out $reader/average-12
PYTHONPATH=bench python -m reader_tuning.difference $reader/eighth/reader --out $reader/eighth-12
PYTHONPATH=bench python -m reader_tuning.difference $reader/eighth/reader --rank 24 --out $reader/eighth-24
for name in fourth fifth sixth seventh average; do
    PYTHONPATH=bench python -m reader_tuning.independent $reader/$name/reader --threads 2 --out $reader/$name.json
done
for name in average-12 eighth-12 eighth-24; do
    PYTHONPATH=bench python -m reader_tuning.independent $reader/$name --threads 2 --out $reader/$name.json
done
