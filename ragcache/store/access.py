"""Access labels: who may read a chunk, and what may therefore stand before it while its KV is made."""

from collections.abc import Iterable

#: Names of those who may read a chunk, people or groups; None for everybody.
Access = frozenset[str] | None


def may_precede(left: Access, own: Access) -> bool:
    """Whether all who may read a chunk may read another one, so that its KV may be made behind that one.

    A chunk whose label names nobody stands behind what everybody may read, and before nothing.
    """
    return left is None or bool(own and own <= left)


def join_access(labels: Iterable[Access]) -> Access:
    """The label of a text that stands in several places: all who may read one of them."""
    joined = frozenset[str]()
    for label in labels:
        if label is None:
            return None
        joined |= label
    return joined


def parse_access(value: object) -> Access:
    """Read a label from metadata: a list of names, or one string of names between commas; None if there is none.

    What is no label, or an empty one, names nobody: it must not be taken for everybody.
    """
    if value is None:
        return None
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str | int) for name in names):
        return frozenset()
    return frozenset(str(name).strip() for name in names) - {""}
