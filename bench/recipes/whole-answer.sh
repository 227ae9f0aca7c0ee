# A whole answer that quotes its chunks: stock and ours by two rows, token by token and with prompt lookup, over prompts that begin
# a quotation, and questions that ask for one. RAGCACHE_DATA names the folder of the public files, see docs/reader.md. Twenty
# minutes on two quiet cores.
python bench/studies/whole_answer.py --data "$RAGCACHE_DATA/xquad/xquad.en.json" --model smollm2 --n 5 \
    --out docs/benchmarks/whole-answer.json
