"""What a request may be made of: every value of one is checked here, so that it is refused by name on every path."""

from collections.abc import Sequence
from math import isfinite
from numbers import Integral, Real
from types import UnionType

from ragcache.errors import InvalidArgument

MOST = 2**63 - 1  # what tokenizers, SQLite and torch take for a number


def check_question(text: object, what: str = "question") -> None:
    """Refuse a question, or prompt, that is blank, no text, or no valid Unicode.

    Raises
    ------
    InvalidArgument
        The message says which.
    """
    check_text(text, what)
    if isinstance(text, str) and not text.strip():
        raise InvalidArgument(f"the {what} is blank; ask something")


def check_text(text: object, what: str) -> None:
    """Refuse what is no text, or has half a character in it (a lone surrogate), which nothing can write down.

    Raises
    ------
    InvalidArgument
        The message says where.
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"the {what} is a {type(text).__name__}; give a text")
    if text.isascii() or text.encode("utf-8", "ignore").decode() == text:
        return
    place = next(place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")
    raise InvalidArgument(f"the {what} has a lone surrogate, {text[place]!a}, at character {place}; leave it out")


def check_not_blank(*paths: object) -> None:
    """Refuse blank paths, which would mean the working directory.

    Raises
    ------
    InvalidArgument
        If one is blank.
    """
    if not all(str(path).strip() for path in paths):
        raise InvalidArgument("a path is blank, as of a variable that is not set; name a file or folder, or . for here")


def check_count(name: str, value: object, least: int, hint: str) -> None:
    """Refuse what is no whole number from `least` on.

    Raises
    ------
    InvalidArgument
        Names the value.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InvalidArgument(f"{name} is {value!r}; it must be a whole number")
    if int(value) < least:
        raise InvalidArgument(f"{name} is {value}; {hint}")


def check_number(name: str, value: object, least: float, most: float, hint: str, *, above: bool = False) -> None:
    """Refuse what is no number from `least`, or `above` it, to `most`, both included.

    Raises
    ------
    InvalidArgument
        Names the value.
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        raise InvalidArgument(f"{name} is {value!r}; it must be a number")
    number = float(value)
    if not isfinite(number) or not least <= number <= most or (above and number == least):
        raise InvalidArgument(f"{name} is {value}; {hint}")


def check_stops(stop: Sequence[str]) -> None:
    """Refuse what are no strings to stop before.

    Raises
    ------
    InvalidArgument
        Names them.
    """
    if isinstance(stop, str) or not all(isinstance(one, str) and one for one in stop):
        raise InvalidArgument(f"stop is {stop!r}; give a tuple of strings, none of them empty")


def check_kind(name: str, value: object, kind: type | UnionType, hint: str) -> None:
    """Refuse what is of another kind.

    Raises
    ------
    InvalidArgument
        Names the value, and says what to give instead.
    """
    if not isinstance(value, kind):
        raise InvalidArgument(f"{name} is {value!r:.80}; give {hint}")
