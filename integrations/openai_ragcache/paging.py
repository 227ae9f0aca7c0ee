"""Lists as OpenAI gives them: so many at once, behind an id, in either order."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Depends, Query


class Page:
    """Which part of a list is wanted.

    Parameters
    ----------
    limit : int
        Most entries.
    after : str, optional
        The id in front of the first.
    order : {"asc", "desc"}
        Oldest or newest first.
    """

    def __init__(
        self,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> None:
        self._limit, self._after, self._order = limit, after, order

    def of(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """That part of a list, whose rows are given oldest first."""
        ordered = list(rows) if self._order == "asc" else list(reversed(rows))
        start = next((i + 1 for i, row in enumerate(ordered) if row["id"] == self._after), 0)
        shown = ordered[start : start + self._limit]
        ends = (
            {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
        )
        return {"object": "list", "data": shown, **ends, "has_more": start + self._limit < len(ordered)}


PageOf = Annotated[Page, Depends(Page)]
