"""Key-value retrieval of Lost in the Middle: random identifiers, one of them to look up (2307.03172)."""

from ragcache.evaluate.datasets.files import Node
from ragcache.evaluate.datasets.item import Item


def item(row: Node, size: int) -> Item:
    """Make an item of one record, `size` pairs a chunk; lines as in the JSON that the original prompt shows."""
    key, value = row["key"].filled(), row["value"].filled()
    pairs = [(one.text(), other.text()) for one, other in (entry.pair() for entry in row["ordered_kv_records"])]
    if (key, value) not in pairs:
        raise row.wrong(f"the pair of {key!r} and {value!r} among 'ordered_kv_records'")
    lines = [f'"{one}": "{other}"' for one, other in pairs]
    chunks = tuple(",\n".join(lines[i : i + size]) for i in range(0, len(lines), size))
    return Item("", f'What is the value of the key "{key}"?', (value,), chunks, (pairs.index((key, value)) // size,))
