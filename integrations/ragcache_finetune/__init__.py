"""`ragcache finetune`: a model learns to read chunks whose KV was made apart, by LoRA on transformers' own Trainer.

A recipe says whom a chunk's tokens attend to and where they stand (`recipes`), a context of chunks with its questions
is laid out by ragcache's own template (`layout`), and the mask follows from the layout (`masks`): training sees what
answering sees.
"""

from ragcache_finetune.recipes import RECIPES, Recipe

__all__ = ["RECIPES", "Recipe"]
