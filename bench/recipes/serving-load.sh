# 32 streams at once over loopback for five minutes, then kill -9 in mid-stream and a new start. Needs /proc.
python bench/studies/serving_load.py --minutes 5 --streams 32 --out docs/benchmarks/serving-load.json
