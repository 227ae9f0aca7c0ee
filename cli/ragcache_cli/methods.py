"""`ragcache methods`: the table of the literature."""

from ragcache_cli.options import AsJson
from ragcache_cli.terminal import say_json, table

_COLUMNS = ("name", "paper", "recompute", "finetuned", "about")


def methods(as_json: AsJson = False) -> None:
    """List the methods and the papers they come from; with --json, their choices on every axis too.

    A row that says `finetuned` answers by a model that `ragcache finetune` tuned by that recipe, and by no other.
    """
    from ragcache.methods import list_methods as every

    rows = [row.as_dict() for row in every().values()]
    if as_json:
        say_json(rows)
    else:
        table(_COLUMNS, [[row[name] or None for name in _COLUMNS] for row in rows])
