"""A choice by its name."""

from collections.abc import Sequence
from typing import TypeVar

from ragcache.errors import InvalidArgument

Choice = TypeVar("Choice", bound=str)


def check_choice(what: str, given: str, choices: Sequence[Choice]) -> Choice:
    """Return the choice of that name.

    Raises
    ------
    InvalidArgument
        If there is none.
    """
    for one in choices:
        if one == given:
            return one
    raise InvalidArgument(f"{what} is {given!r}; choose one of {', '.join(choices)}")
