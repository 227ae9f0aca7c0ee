"""Names: ids that nobody can guess, names of files that are no paths, and what a client reads of a source."""

import secrets
from pathlib import Path

from openai_ragcache.api_errors import ApiError
from ragcache.retrieve.formats import SUPPORTED, SUPPORTED_WORDS

_LONGEST = 200  # bytes of a file's name


def new_id(kind: str) -> str:
    """A name that nobody can guess."""
    return f"{kind}-{secrets.token_hex(12)}"


def check_file_name(name: str) -> str:
    """A file's name as it is; one that could lead elsewhere, or of a kind that no reader takes, is refused.

    Raises
    ------
    ApiError
        400, with the name.
    """
    shown = ascii(name[:80])
    if not name or name.startswith(".") or any(sign in name for sign in "/\\:") or not name.isprintable():
        raise ApiError(
            f"{shown} is no name of a file; send one without folders", param="file", code="invalid_file_name"
        )
    if len(name.encode("utf-8", "replace")) > _LONGEST:
        raise ApiError(f"{shown}… is longer than {_LONGEST} bytes", param="file", code="invalid_file_name")
    if Path(name).suffix.lower() not in SUPPORTED:
        raise ApiError(
            f"{shown} is of a kind that no reader takes; those are {SUPPORTED_WORDS}",
            param="file",
            code="unsupported_file",
        )
    return name


def file_name(source: str) -> str:
    """A document's name without its folders, as text that can be sent."""
    name = Path(source).name if Path(source).is_absolute() else source
    return name.encode("utf-8", "replace").decode("utf-8")
