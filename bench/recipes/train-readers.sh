# Readers of other shapes, and one that never meets a cut border: an hour each, on one core. Interrupted, it resumes.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md.
train() {
    name=$1
    shift
    PYTHONPATH=bench python -m reader_training --out "runs/readers/$name" --vocabulary 8192 --wide --words smollm2 \
        --public "$RAGCACHE_DATA" --minutes 60 "$@"
}
for shape in base heads qwen3 deep large; do
    train $shape --shape $shape
done
train unblocked --whole
