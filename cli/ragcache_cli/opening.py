"""Open an index for a command: whatever is wrong is said first, and nothing is imported that no answer runs."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragcache.errors import RagCacheError
from ragcache_cli.lean_start import lean_start
from ragcache_cli.terminal import without_loading_bars

if TYPE_CHECKING:
    from ragcache.method import Method
    from ragcache.rag import RagCache


def open_index(
    index: Path,
    *,
    create: bool = False,
    asked: "str | Method | None" = None,
    second_sight_bytes: int = 0,
    remote: str | None = None,
    **how: Any,
) -> "RagCache":
    """The index, to answer by the method that is `asked` for, if any; the rest is as in `RagCache.open`."""
    from ragcache.index.opening import resolve

    found = resolve(index, create=create, **how)  # refuses in a moment what opening would in many
    found.check_tuning(asked or found.method)
    with lean_start(), without_loading_bars():
        from ragcache.rag import RagCache

        rag = RagCache.open(index, create=create, second_sight_bytes=second_sight_bytes, remote=remote, **how)
        with suppress(RagCacheError):  # whoever embeds something is told
            rag.embedder.count("")  # loaded at its first use, which had better be here
        return rag


def chosen_method(index: Path, method: str | None, auxiliary: str | None) -> "str | Method | None":
    """The method that was named; with an auxiliary model in it, if one was."""
    if auxiliary is None:
        return method
    from ragcache.index.settings import settings_of
    from ragcache.methods import DEFAULT_METHOD, find_method
    from ragcache.select.companion import check_auxiliary

    row = find_method(method or settings_of(index).get("method") or DEFAULT_METHOD).with_auxiliary(auxiliary)
    check_auxiliary(auxiliary)
    return row


def check_methods(names: list[str] | None) -> None:
    """Refuse a name that no row of the table has."""
    from ragcache.methods import find_method

    for name in names or ():
        find_method(name)
