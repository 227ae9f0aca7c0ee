"""What a LangChain vector store says that it has: asked before and after something was taken away, or at any time."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_ragcache.listing import ids_for, ids_in, name_of
from ragcache.index.collection import Collection, Synced, batches

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Following:
    """Forgets what a store lost, and only what it says it lost.

    Attributes
    ----------
    store : VectorStore
        The one that is asked.
    kv : Collection
        What is known of it.
    """

    store: VectorStore
    kv: Collection

    def sync(self) -> Synced:
        """Ask for every name, and forget those that the store lacks."""
        names = self.kv.names()
        try:
            answered = self._answered(names)
        except Exception as error:
            return Synced.unanswered(len(names), error)
        return self.kv.reconcile(names, answered)

    async def async_sync(self) -> Synced:
        """The same of a store that is asked asynchronously."""
        names = await run_in_executor(None, self.kv.names)
        try:
            answered = await self._answered_later(names)
        except Exception as error:
            return Synced.unanswered(len(names), error)
        return await run_in_executor(None, self.kv.reconcile, names, answered)

    def removing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that takes something away in a manner of the store's own; what is gone behind it is forgotten."""
        if inspect.iscoroutinefunction(method):

            async def later(*args: Any, **kwargs: Any) -> Any:
                before = await self._there_later()
                done = await method(*args, **kwargs)
                await run_in_executor(None, self._follow, before, await self._there_later() if before else None)
                return done

            return later

        def now(*args: Any, **kwargs: Any) -> Any:
            before = self._there()
            done = method(*args, **kwargs)
            self._follow(before, self._there() if before else None)
            return done

        return now

    def _follow(self, before: set[str] | None, after: set[str] | None) -> None:
        """Forget what is gone; nothing, and say so, where the store could not say what it has at either time."""
        if before is None or after is None:
            before = after = set()
        self.kv.follow(before, after)

    def _there(self) -> set[str] | None:
        """Names that the store says it has; None where it cannot say."""
        names = self.kv.names()
        try:
            answered = self._answered(names)
        except Exception as error:
            _tell(error)
            return None
        return self.kv.present(answered)

    async def _there_later(self) -> set[str] | None:
        names = await run_in_executor(None, self.kv.names)
        try:
            answered = await self._answered_later(names)
        except Exception as error:
            _tell(error)
            return None
        return await run_in_executor(None, self.kv.present, answered)

    def _answered(self, names: Sequence[str]) -> list[str | None]:
        """Which of some names the store has, as it writes them."""
        answered: list[str | None] = []
        for batch in batches(names):
            known = ids_in(self.store, batch)
            answered += _names(self.store.get_by_ids(ids_for(self.store, batch))) if known is None else known
        return answered

    async def _answered_later(self, names: Sequence[str]) -> list[str | None]:
        answered: list[str | None] = []
        for batch in batches(names):
            known = await run_in_executor(None, ids_in, self.store, batch)
            answered += _names(await self.store.aget_by_ids(ids_for(self.store, batch))) if known is None else known
        return answered


def _names(documents: Sequence[Document]) -> list[str | None]:
    return [name_of(document) for document in documents]


def _tell(error: Exception) -> None:
    """A store that fails when asked has said nothing, as one that cannot be: deleting goes on, and that is logged."""
    if not isinstance(error, NotImplementedError):
        _log.warning("the vector store failed to say which ids it has: %s", error)
