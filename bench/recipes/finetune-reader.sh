# One sibling of the bundled reader per recipe, on invented documents: an adapter of 1 MB each, those of `bench/adapters` among
# them (kvlink with 5 link tokens a chunk). 20 minutes each on one core. It resumes.
for recipe in full turborag turborag-composite block-attention kvlink; do
    ragcache finetune --recipe $recipe --model bundled --data worlds --steps 400 --every 100 --seed 0 --rank 8 \
        --rate 1e-3 --threads 1 --out runs/siblings/$recipe
done
