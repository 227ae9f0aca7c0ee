# LoRA on a 0.5B shape: memory, a killed run that goes on, and the key of an index. Ten minutes on one core.
python bench/studies/finetune_memory.py --out docs/benchmarks/finetune-memory.json
