"""What a LangChain vector store says that it has: asked before and after something was taken away, or at any time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_ragcache.listing import ids_for, name_of
from ragcache.index.collection import Collection, Synced, batches


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
        return self.kv.sync(lambda names: self._has(names))

    async def async_sync(self) -> Synced:
        """The same of a store that is asked asynchronously."""
        names = await run_in_executor(None, self.kv.names)
        try:
            answered = await self._answered(names)
        except NotImplementedError as error:
            return Synced(len(names), 0, f"the store cannot say which ids it has ({error}), so nothing was forgotten")
        return await run_in_executor(None, self.kv.reconcile, names, answered)

    def removing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that takes something away in a manner of the store's own; what is gone behind it is forgotten."""
        if inspect.iscoroutinefunction(method):

            async def later(*args: Any, **kwargs: Any) -> Any:
                before = await self._there_later()
                done = await method(*args, **kwargs)
                await run_in_executor(None, self.kv.follow, before, await self._there_later())
                return done

            return later

        def now(*args: Any, **kwargs: Any) -> Any:
            before = self._there()
            done = method(*args, **kwargs)
            self.kv.follow(before, self._there())
            return done

        return now

    def _has(self, names: Sequence[str]) -> list[str | None]:
        return [name_of(document) for document in self.store.get_by_ids(ids_for(self.store, names))]

    def _there(self) -> set[str]:
        """Names that the store says it has; none where it cannot say."""
        try:
            return self.kv.present([name for batch in batches(self.kv.names()) for name in self._has(batch)])
        except NotImplementedError:
            return set()

    async def _there_later(self) -> set[str]:
        try:
            answered = await self._answered(await run_in_executor(None, self.kv.names))
        except NotImplementedError:
            return set()
        return await run_in_executor(None, self.kv.present, answered)

    async def _answered(self, names: Sequence[str]) -> list[str | None]:
        found = [await self.store.aget_by_ids(ids_for(self.store, batch)) for batch in batches(names)]
        return [name_of(document) for documents in found for document in documents]
