"""What is to be forgotten, written down in the transaction that decides it: no crash leaves a removed text's KV.

A key whose blob must go is in one table until the blob is gone, and whoever opens the index next finishes what a killed
process left. A key whose blob failed its checks is in another, since KV that was made with it carries its text too and
must go with its chunk.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable
from itertools import chain

from ragcache.store.database import Database
from ragcache.store.local import is_key
from ragcache.store.protocol import BlobStore

#: In a query: any number of values in one parameter, as a JSON list.
LISTED = "(SELECT value FROM json_each(?))"
#: Those whose left context holds any of some keys.
MADE_WITH = f'EXISTS (SELECT 1 FROM json_each("left") WHERE value IN {LISTED})'

_AT_ONCE = 64  # blobs deleted while no other process may write to the catalogue

_NAMED = "SELECT key FROM encodings UNION SELECT key FROM lost"
_STRAYS = f"""
    SELECT DISTINCT encodings.key FROM encodings, json_each("left") AS company
    WHERE length(company.value) = 64 AND company.value NOT IN ({_NAMED}) AND company.value NOT IN {LISTED}"""


class Forgotten:
    """The KV of an index that is to be deleted.

    Parameters
    ----------
    catalog : Database
        Writes down what it is.
    store : BlobStore
        Has the blobs.
    discard : callable
        Told every key before its blob goes, for whoever holds it in memory.
    """

    def __init__(
        self, catalog: Database, store: BlobStore, discard: Callable[[str], object] = lambda key: None
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._discard = discard

    def add(self, keys: Iterable[str]) -> None:
        """Forget KV that may still be named, and all that was made with it."""
        with self._catalog.transaction() as connection:
            forget(connection, keys)
        self.delete()

    def delete(self) -> None:
        """Delete the blobs of all that was forgotten, by this process or by one that was killed."""
        keys = [key for (key,) in self._catalog.read("SELECT key FROM forgotten")]
        for first in range(0, len(keys), _AT_ONCE):
            with self._catalog.transaction() as connection:  # or another process might enter one of them meanwhile
                query = f"SELECT key FROM forgotten WHERE key IN {LISTED}"
                still = [key for (key,) in connection.execute(query, (_listed(keys[first : first + _AT_ONCE]),))]
                for key in filter(is_key, still):  # what was changed on the disk names no blob
                    self._discard(key)
                    self._store.delete(key)
                connection.execute(f"DELETE FROM forgotten WHERE key IN {LISTED}", (_listed(still),))

    def sweep(self, keep: Collection[str]) -> None:
        """Delete blobs that nothing names but for some, and KV that was made with others that nothing names.

        A killed ingestion leaves the first, and an older version's killed removal both. An ingestion that runs at the
        same time finds blobs gone that it had not entered yet, and makes them again the next time.
        """
        if strays := self._catalog.read(_STRAYS, _listed(keep)):
            self.add(key for (key,) in strays)
        named = {key for (key,) in self._catalog.read(_NAMED)}
        for key in [*self._store.list(), *self._store.quarantined()]:
            if key not in named and key not in keep:
                self._delete_unnamed(key)

    def _delete_unnamed(self, key: str) -> None:
        """Delete a blob, unless another process has entered it since."""
        with self._catalog.transaction() as connection:
            if not connection.execute(f"SELECT 1 FROM ({_NAMED}) WHERE key = ?", (key,)).fetchone():
                self._store.delete(key)


def keys_of(connection: sqlite3.Connection, condition: str, *parameters: object) -> list[str]:
    """Keys of the KV of some chunks, what failed its checks included."""
    chunks = f"SELECT id FROM chunks WHERE {condition}"
    found = connection.execute(
        f"SELECT key FROM encodings WHERE chunk IN ({chunks}) UNION SELECT key FROM lost WHERE chunk IN ({chunks})",
        (*parameters, *parameters),
    )
    return [key for (key,) in found]


def forget(connection: sqlite3.Connection, keys: Iterable[str]) -> list[str]:
    """Drop every encoding by some keys, and every one made in their company, and in that one's; all of their keys."""
    gone, found = set[str](), set(keys)
    if not found:
        return []
    while found:
        gone |= found
        made = connection.execute(f"SELECT key FROM encodings WHERE {MADE_WITH}", (_listed(found),))
        found = set(chain.from_iterable(made)) - gone
    for table in ("encodings", "lost"):
        connection.execute(f"DELETE FROM {table} WHERE key IN {LISTED}", (_listed(gone),))
    return _noted(connection, gone)


def forget_unreferenced(connection: sqlite3.Connection, keys: Collection[str]) -> list[str]:
    """The same for those of some keys that no chunk has any more."""
    if not keys:
        return []
    query = f"SELECT value FROM json_each(?) WHERE value NOT IN ({_NAMED})"
    return forget(connection, chain.from_iterable(connection.execute(query, (_listed(keys),))))


def lose(connection: sqlite3.Connection, key: str) -> None:
    """Drop every encoding by a key whose blob is of no use; its chunks remember it."""
    connection.execute("INSERT OR IGNORE INTO lost SELECT chunk, key FROM encodings WHERE key = ?", (key,))
    connection.execute("DELETE FROM encodings WHERE key = ?", (key,))


def evict(connection: sqlite3.Connection, keys: Collection[str]) -> list[str]:
    """Drop every encoding by some keys; its chunks remember them, since what was made with them stays."""
    for key in keys:
        lose(connection, key)
    return _noted(connection, keys)


def drop_recipe(connection: sqlite3.Connection, recipe: str) -> list[str]:
    """Drop every encoding by a recipe; its chunks remember those that nothing else names, which go."""
    keys = {key for (key,) in connection.execute("SELECT key FROM encodings WHERE recipe = ?", (recipe,))}
    connection.execute("INSERT OR IGNORE INTO lost SELECT chunk, key FROM encodings WHERE recipe = ?", (recipe,))
    connection.execute("DELETE FROM encodings WHERE recipe = ?", (recipe,))
    named = connection.execute(f"SELECT key FROM encodings WHERE key IN {LISTED}", (_listed(keys),))
    return _noted(connection, keys - set(chain.from_iterable(named)))


def recall(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Keys have a blob again, of the same content: it stays."""
    for table in ("forgotten", "lost"):
        connection.execute(f"DELETE FROM {table} WHERE key IN {LISTED}", (_listed(keys),))


def _noted(connection: sqlite3.Connection, keys: Iterable[str]) -> list[str]:
    connection.execute("INSERT OR IGNORE INTO forgotten SELECT value FROM json_each(?)", (_listed(keys),))
    return sorted(keys)


def _listed(keys: Iterable[str]) -> str:
    return json.dumps(sorted(keys))
