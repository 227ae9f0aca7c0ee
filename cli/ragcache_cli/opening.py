"""Open an index for a command: whatever is wrong is said first, and nothing is imported that no answer runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcache_cli.lean_start import lean_start
from ragcache_cli.terminal import without_loading_bars

if TYPE_CHECKING:
    from ragcache.rag import RagCache


def open_index(index: Path, *, create: bool = False, **how: Any) -> "RagCache":
    """The index; `model`, `embedder`, `dtype`, `device` and `method` are as in `RagCache.open`."""
    from ragcache.index.opening import resolve

    resolve(index, create=create, **how)  # refuses in a moment what opening would in many
    with lean_start(), without_loading_bars():
        from ragcache.rag import RagCache

        return RagCache.open(index, create=create, **how)


def check_methods(names: list[str] | None) -> None:
    """Refuse a name that no row of the table has."""
    from ragcache.methods import find_method

    for name in names or ():
        find_method(name)
