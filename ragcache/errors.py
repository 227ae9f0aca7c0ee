"""Everything ragcache raises on purpose: one tree, caught by its root or by a leaf.

::

    RagCacheError
    ├── InvalidArgument        a value outside what a call accepts
    │   ├── UnknownMethod          no row of that name in the table
    │   ├── PromptTooLong          the prompt does not fit the model
    │   ├── UnusableAdapter        an adapter that is damaged, of another model, or no plain LoRA
    │   └── UntunedReader          the method takes a model that was tuned in another way
    ├── MissingExtra           an optional package is not installed
    ├── UnsupportedModel       the compatibility check refused the model
    ├── NoDocuments            nothing to ingest
    ├── UnsupportedDocument    a file type that no loader reads
    ├── UnreadableDocument     a file that is binary or broken
    │   └── EmptyDocument          a file without text
    ├── UnusableIndex          the index on disk cannot be used as asked
    │   ├── IndexFormat            another format, or damaged
    │   ├── IndexMismatch          made by another model, tokenizer or dtype
    │   ├── KeyMismatch            encrypted by another key than was named, or by none
    │   ├── EmptyIndex             nothing was ingested yet
    │   └── MissingEncoding        the method's encoding was never made
    ├── CorruptBlob            a stored KV that fails its own checks
    ├── StorageFull            the disk refused a write
    │   └── UnreachableStore       an object store did not answer, or refused
    ├── IncompleteAnswer       an answer that broke off
    ├── OutOfMemory            an accelerator's memory does not suffice
    ├── WorkerDied             a process that shares the work ended early
    └── PeerFailed             something that a benchmark compares with gave up

Messages are one sentence that names the values involved, followed by the next command to run where there is one.
"""

import errno
from pathlib import Path
from shlex import quote

#: What to install by: `ragcache` itself is another project's name on the public index.
DISTRIBUTION = "ragcache-kv"

_FULL, _FORBIDDEN = (errno.ENOSPC, errno.EDQUOT), (errno.EACCES, errno.EPERM, errno.EROFS)
_SQLITE_FULL, _SQLITE_FORBIDDEN = (13,), (3, 8)  # full; no permission, read-only


def install(extra: str = "") -> str:
    """Return the command that installs this project, with an extra or none."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"


def ingest(index: Path | str, *, method: str = "", paths: str = "") -> str:
    """Return the command that ingests `paths` into an index; without any, makes the KV of what it holds already."""
    named = [f"--method {method}"] if method else []
    return " ".join(["ragcache ingest", *([paths] if paths else []), *named, f"--index {quote(str(index))}"])


def finetune(recipe: str) -> str:
    """Return the command that tunes a model by a recipe."""
    return f"ragcache finetune --recipe {recipe} …"


def remedy(error: BaseException, sqlite: int | None = None) -> str:
    """Return what to do where the system or SQLite refused.

    Parameters
    ----------
    error : BaseException
        Its `errno`, or its `sqlite_errorcode`, says why.
    sqlite : int, optional
        SQLite's code, where the error has it in its words only.
    """
    system = getattr(error, "errno", None)
    kind = (getattr(error, "sqlite_errorcode", 0) if sqlite is None else sqlite) & 0xFF
    if system in _FULL or kind in _SQLITE_FULL:
        return "free some space and repeat the command"
    if system in _FORBIDDEN or kind in _SQLITE_FORBIDDEN:
        return "repeat the command as the account that ingests, or name another place"
    return "repair it and repeat the command"


class RagCacheError(Exception):
    """Root of everything ragcache raises on purpose."""


class InvalidArgument(RagCacheError, ValueError):
    """A value outside what a call accepts."""


class UnknownMethod(InvalidArgument):
    """No row of that name in the method table."""


class PromptTooLong(InvalidArgument):
    """The prompt, with the answer's tokens, does not fit the model."""


class UnusableAdapter(InvalidArgument):
    """An adapter that is not there, damaged, trained on another model, or of a kind that is not merged."""


class UntunedReader(InvalidArgument):
    """The method takes a model that was tuned by a recipe, and this one was tuned by none, or by another."""


class MissingExtra(RagCacheError, ImportError):
    """An optional package is not installed; the message names the install command."""


class UnsupportedModel(RagCacheError):
    """The compatibility check refused the model; the message names the layer or feature and the reason.

    Parameters
    ----------
    reason : str
        What the model cannot do, and why.
    way_out : str
        What to do instead.
    """

    def __init__(self, reason: str, way_out: str = "") -> None:
        super().__init__(f"{reason}. {way_out}" if way_out else reason)
        self.reason = reason


class NoDocuments(RagCacheError):
    """Nothing to ingest under the given paths."""


class UnsupportedDocument(RagCacheError):
    """A file type that no loader reads; the message lists those that are."""


class UnreadableDocument(RagCacheError):
    """A file that is empty, binary or broken."""


class EmptyDocument(UnreadableDocument):
    """A file without text."""


class UnusableIndex(RagCacheError):
    """The index on disk cannot be used as asked."""


class IndexFormat(UnusableIndex):
    """The index has another format, or is damaged."""


class IndexMismatch(UnusableIndex):
    """The index was made by another model, tokenizer, dtype or embedder."""


class KeyMismatch(UnusableIndex):
    """The index is encrypted and no key or another one was named, or it is not encrypted and one was."""


class EmptyIndex(UnusableIndex):
    """Nothing was ingested into the index yet."""


class MissingEncoding(UnusableIndex):
    """The index lacks the encoding that the method loads."""


class CorruptBlob(RagCacheError):
    """A stored KV that fails its own checks: truncated, flipped, or another key's.

    Parameters
    ----------
    key : str
        The key that was asked for.
    reason : str
        What is wrong with the bytes found under it.
    read : bool
        Whether there were bytes to be checked, or no file; False where the disk did not give them just now.
    """

    def __init__(self, key: str, reason: str, *, read: bool = True) -> None:
        super().__init__(f"stored KV {key[:12]} is unusable: {reason}")
        self.key = key
        self.reason = reason
        self.read = read


class StorageFull(RagCacheError, OSError):
    """The disk refused a write; nothing was half-published."""


class UnreachableStore(StorageFull):
    """An object store did not answer, or refused; what it has is as it was."""


class IncompleteAnswer(RagCacheError):
    """An answer that an error or an interruption has ended before its last token."""


class OutOfMemory(RagCacheError, MemoryError):
    """An accelerator's memory does not suffice; the message names the sizes."""


class WorkerDied(RagCacheError):
    """A process that shares the work ended early; what was done is kept."""


class PeerFailed(RagCacheError):
    """Something that a benchmark compares with gave up."""
