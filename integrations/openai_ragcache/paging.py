"""Lists as OpenAI gives them: so many at once, behind an id or in front of one, in either order."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from openai_ragcache.api_errors import ApiError

Row = TypeVar("Row")


class Page(BaseModel):
    """Which part of a list is wanted; a parameter of another name is refused.

    Attributes
    ----------
    limit : int
        Most entries.
    after, before : str, optional
        The id in front of the first entry, and the one behind the last.
    order : {"asc", "desc"}
        Oldest or newest first.
    """

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=10_000)] = 100
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"

    def of(self, rows: dict[str, Row], show: Callable[[Row], dict[str, Any]]) -> dict[str, Any]:
        """That part of a list.

        Parameters
        ----------
        rows : dict of str to object
            The whole list by id, oldest first.
        show : callable
            Describes a row; asked of those that are on the page.

        Raises
        ------
        ApiError
            400, if the list has nothing of an id that is named.
        """
        ids = list(rows) if self.order == "asc" else list(reversed(rows))
        start = 0 if self.after is None else _place(ids, self.after, "after") + 1
        end = len(ids) if self.before is None else _place(ids, self.before, "before")
        part = ids[start:end]
        backwards = self.before is not None and self.after is None  # the page in front of one that is known
        shown = part[-self.limit :] if backwards else part[: self.limit]
        return {
            "object": "list",
            "data": [show(rows[id]) for id in shown],
            "first_id": shown[0] if shown else None,
            "last_id": shown[-1] if shown else None,
            "has_more": len(shown) < len(part),
        }


def _place(ids: list[str], id: str, param: str) -> int:
    if id not in ids:
        raise ApiError(f"the list has no {id[:80]!a}, or no longer; list it anew", param=param, code="invalid_value")
    return ids.index(id)


PageOf = Annotated[Page, Query()]
