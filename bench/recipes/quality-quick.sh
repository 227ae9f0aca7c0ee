# A first look at the same, in minutes, from nothing.
rm -f runs/quality-quick.jsonl
ragcache bench quality --quick --workers 2 --together --out runs/quality-quick.json
