# A first look at the quality table, in minutes, from nothing.
rm -f runs/quality-quick.jsonl
ragcache bench quality --quick --workers 2 --together --out runs/quality-quick.json
