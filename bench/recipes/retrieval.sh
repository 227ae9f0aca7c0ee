# What title lines and words beside meaning are worth to retrieval, each alone and together.
# RAGCACHE_DATA names the folder of the public files, see docs/reader.md.
python bench/studies/retrieval.py --data "$RAGCACHE_DATA" --out docs/benchmarks/retrieval.json
