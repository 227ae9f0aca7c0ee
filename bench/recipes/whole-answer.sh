# A whole answer that quotes its chunks: stock and ours, token by token and with prompt lookup. RAGCACHE_DATA names the
# folder of the public files, see docs/reader.md. Four minutes on two quiet cores.
python bench/studies/whole_answer.py --data "$RAGCACHE_DATA/xquad/xquad.en.json" --model smollm2 --context 4096 --n 5 \
    --out docs/benchmarks/whole-answer.json
