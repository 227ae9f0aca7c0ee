# `ragcache serve --verify` beside a table that is made without a server, over honest pages and misleading ones.
python bench/studies/verified_share.py --n 100 --threads 1 --out docs/benchmarks/verified-share.json
