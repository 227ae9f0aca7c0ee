# What it takes to publish a catalogue whole, and to look chunks up in a copy of it. A minute.
python bench/studies/published_catalogue.py --out docs/benchmarks/published-catalogue.json
