# Which model answers people's own documents: articles ingested as files, through the whole pipeline.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md.
PYTHONPATH=bench python -m reader_tuning --data "$RAGCACHE_DATA" --out runs/smollm2 --only-write
python bench/studies/own_documents.py --data runs/smollm2/examined/xquad-examined.json --n 120 \
    --out docs/benchmarks/own-documents.json
