"""Rows of the catalogue that are not what was written, or that belong to none: in every table that has checksums."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from ragcache.store.forgotten import LISTED, forget_unreferenced
from ragcache.store.schema import CHUNK, DOCUMENT, ENCODING_CHECKED, ENTRY, UNCHECKED, checksum

_TABLES = {
    "documents": ("the document", DOCUMENT),
    "chunks": ("the chunk", CHUNK),
    "encodings": ("the KV of the chunk", ENCODING_CHECKED),
    "entries": ("the entry of the vector store", ENTRY),
    "settings": ("the setting", "name, value"),
}
_ORPHANED = {
    "chunks": "document NOT IN (SELECT id FROM documents)",
    "encodings": "chunk NOT IN (SELECT id FROM chunks)",
}

#: Runs a query and gives its rows.
Execute = Callable[..., Iterable[tuple[Any, ...]]]


def damaged_rows(execute: Execute, table: str) -> dict[int, tuple[Any, ...]]:
    """Rows of a table that fail their checksum, or whose document or chunk is gone; by number."""
    rows = execute(f"SELECT rowid, {_TABLES[table][1]}, checksum, {_ORPHANED.get(table, '0')} FROM {table}")
    found = {number: tuple(values) for number, *values, own, orphaned in rows if orphaned or own != checksum(*values)}
    return {number: values for number, values in found.items() if table != "settings" or values[0] not in UNCHECKED}


def name_damaged(execute: Execute) -> list[str]:
    """What `damaged_rows` finds, table by table, in words."""
    return [
        f"{what} {ascii(values[0])[1:-1]:.80}"
        for table, (what, _) in _TABLES.items()
        for values in damaged_rows(execute, table).values()
    ]


def drop_damaged(connection: sqlite3.Connection) -> None:
    """Remove damaged rows about KV, with the KV that nothing else names, and other stores' damaged names."""
    encodings = damaged_rows(connection.execute, "encodings")
    for table, numbers in (("encodings", encodings), ("entries", damaged_rows(connection.execute, "entries"))):
        connection.execute(f"DELETE FROM {table} WHERE rowid IN {LISTED}", (json.dumps(list(numbers)),))
    forget_unreferenced(connection, {str(key) for _, _, key, *_ in encodings.values()})
