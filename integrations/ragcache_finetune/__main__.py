"""`python -m ragcache_finetune`: the command where the package lies on the path but is not installed."""

import typer

from ragcache_finetune.command import finetune

if __name__ == "__main__":
    typer.run(finetune)
