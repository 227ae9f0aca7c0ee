"""Who may ask, and over which index: an API key opens one index, and an index is all that its tenant can see."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ragcache.errors import InvalidArgument

if TYPE_CHECKING:
    from openai_ragcache.uploads import Uploads
    from ragcache import RagCache

_COMMENT = re.compile(r"(?:^|\s)#")
_SHORTEST = 16  # characters of a key


@dataclass(frozen=True, eq=False)
class Tenant:
    """A tenant: an index, with its documents, its stores and its own key secret.

    Attributes
    ----------
    rag : RagCache
        The index.
    """

    rag: "RagCache"

    @cached_property
    def uploads(self) -> "Uploads":
        """Its files and vector stores, in the index's folder."""
        from openai_ragcache.uploads import Uploads

        return Uploads(self.rag.index.path / "uploads")

    def close(self) -> None:
        """Close the index."""
        self.uploads.close()
        self.rag.close()


class Tenants:
    """The tenants of a server, by their API keys.

    Parameters
    ----------
    by_key : mapping of str to Tenant
        Without any, `anonymous` is who asks.
    anonymous : Tenant, optional
        Whoever connects.
    """

    def __init__(self, by_key: Mapping[str, Tenant], anonymous: Tenant | None = None) -> None:
        for key in by_key:
            if len(key) < _SHORTEST or not key.isascii() or any(letter.isspace() for letter in key):
                raise InvalidArgument(
                    f"an API key has {len(key)} characters; give at least {_SHORTEST}, of ASCII without white space"
                )
        self._by_digest = {_digest(key): tenant for key, tenant in by_key.items()}
        self._anonymous = anonymous if not by_key else None
        everybody = [*by_key.values(), *([anonymous] if anonymous else [])]
        self.all = tuple({id(tenant): tenant for tenant in everybody}.values())
        if not self.all:
            raise InvalidArgument("a server has no tenant; name an index, or keys with theirs")

    @classmethod
    def of_one(cls, rag: "RagCache", key: str = "") -> Self:
        """Whoever has the key, or whoever connects if there is none, over one index."""
        tenant = Tenant(rag)
        return cls({key: tenant} if key else {}, tenant)

    @property
    def has_keys(self) -> bool:
        """Whether a key is asked for."""
        return bool(self._by_digest)

    def find(self, key: str) -> Tenant | None:
        """Who has a key; keys are compared by their digests, which takes no longer the more of one is right."""
        return self._by_digest.get(_digest(key)) if self._by_digest else self._anonymous

    def close(self) -> None:
        """Close every tenant's index."""
        with ExitStack() as stack:
            for tenant in self.all:
                stack.callback(tenant.close)


def read_keys(path: Path) -> dict[str, Path]:
    """Each key's index, from a file with a key and a folder on every line; `#` begins a comment, behind a space.

    Raises
    ------
    InvalidArgument
        If a line has not both, or a key comes twice.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"the key file {path} cannot be read: {error}") from error
    found: dict[str, Path] = {}
    for number, line in _meaningful(lines):
        key, _, folder = line.partition(" ")
        if not folder.strip():
            raise InvalidArgument(f"line {number} of {path} must have a key, a space, and the folder of an index")
        if key in found:
            raise InvalidArgument(f"line {number} of {path} has a key that stands there already; give it one index")
        found[key] = Path(folder.strip())
    if not found:
        raise InvalidArgument(f"the key file {path} has no key; write `KEY FOLDER`, one a line")
    return found


def _meaningful(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    for number, line in enumerate(lines, start=1):
        if text := _COMMENT.split(line, maxsplit=1)[0].strip():
            yield number, text


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
