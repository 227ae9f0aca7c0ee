"""How often stored KV was used, and what making it anew takes; kept where a store has a limit."""

import json
from collections.abc import Iterable, Mapping

from ragcache.store.database import Database
from ragcache.store.eviction import Kept
from ragcache.store.forgotten import LISTED

_COLUMNS = "key, work, uses, used, aged"


class Uses:
    """The table of uses of a catalogue; every verb is one transaction.

    Parameters
    ----------
    catalog : Database
        Where it is kept.
    """

    def __init__(self, catalog: Database) -> None:
        self._catalog = catalog

    def read(self, sizes: Mapping[str, int]) -> list[Kept]:
        """What is known of the KV of some keys, each with its bytes; what is unknown was never of use."""
        rows = self._catalog.read(f"SELECT {_COLUMNS} FROM uses WHERE key IN {LISTED}", json.dumps(list(sizes)))
        known = {key: Kept(key, sizes[key], work, uses, used, aged) for key, work, uses, used, aged in rows}
        return [known.get(key) or Kept(key, nbytes, 0.0, 0, 0.0) for key, nbytes in sizes.items()]

    def put(self, kept: Iterable[Kept]) -> None:
        """Write down what is known of some KV, in the place of what was."""
        values = [(one.key, one.work, one.uses, one.used, one.aged) for one in kept]
        with self._catalog.transaction() as connection:
            connection.executemany(f"INSERT OR REPLACE INTO uses ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)

    def prune(self) -> None:
        """Let go of what is known of KV that there is no more."""
        with self._catalog.transaction() as connection:
            connection.execute("DELETE FROM uses WHERE key NOT IN (SELECT key FROM encodings)")
