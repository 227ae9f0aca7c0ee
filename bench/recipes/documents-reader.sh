# Documents that add something, and documents that mislead.
ragcache bench quality --tasks sections-bare,sections-misled,corpus-section-bare \
    --methods in-document,fusionrag,prophetkv --budgets 0,0.05,0.15 --n 150 --seed 7 --workers 2 \
    --out docs/benchmarks/documents-reader.json
