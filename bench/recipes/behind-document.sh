# Is it worth it to show recomputed tokens their document beside the prompt? The built-in test model on tasks of every kind, then a
# reader whose chunks saw each other in all of its training (`make bench/train-readers` makes it; that of the committed table was an earlier
# one, whose weights are gone).
python bench/studies/compositions.py --methods auto,behind-document,prophetkv --budgets 0.05,0.15 --than auto \
    --tasks sections,sections-bare,sections-misled,definitions,column-units \
    --controls full,naive,random --n 100 --seed 23 --out docs/benchmarks/behind-document-reader.json
ragcache bench quality --model runs/readers/average/reader --tasks fresh-sections,fresh-sections-bare \
    --methods auto,behind-document --budgets 0.05,0.15 --random-seeds 1 --n 64 --seed 1 --dtype bfloat16 --workers 2 --together \
    --out docs/benchmarks/behind-document-same.json
