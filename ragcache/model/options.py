"""Options that frameworks hand on by name: a misspelt one is refused, or it would be as if it had not been given."""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ragcache.errors import InvalidArgument


def check_options(who: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse options that nobody knows.

    Parameters
    ----------
    who : str
        Whose options they are.
    given, known : iterable of str
        Names that were given, and those that mean something.

    Raises
    ------
    InvalidArgument
        The message names the nearest known option, or all of them.
    """
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            instead = f"did you mean {near[0]}?" if near else f"it takes {', '.join(sorted(known))}"
            raise InvalidArgument(f"{who} has no option {name!r}; {instead}")


def override(own: Mapping[str, Any], called: Mapping[str, Any]) -> dict[str, Any]:
    """A model's own options, with those of a call in their place; None is an option that was not given."""
    return {**own, **{name: value for name, value in called.items() if value is not None}}
