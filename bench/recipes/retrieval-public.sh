# Of XQuAD's articles and NQ-open's passages with titles: what a look at sentences is worth there. RAGCACHE_DATA names the folder of
# the public files, see docs/reader.md. An hour on one core.
python bench/studies/retrieval.py --sets xquad,nq-open --titles both --data "$RAGCACHE_DATA" --threads 1 \
    --out docs/benchmarks/retrieval-public.json
