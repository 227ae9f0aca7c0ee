"""What an index's folder is to an object store: where its KV is published, or a copy of what was published there."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ragcache.errors import IndexFormat

_FILES = {False: "remote.json", True: "replica.json"}


@dataclass(frozen=True)
class Attachment:
    """An object store that an index's folder belongs to.

    Attributes
    ----------
    url : str
        Where it is; never with credentials.
    max_bytes : int or None
        Most that KV files may take on this machine.
    replica : bool
        Whether the folder is a copy that is only read.
    snapshot : str
        Of a copy: which snapshot it is of.
    published : float
        Of a copy: when that was published, in seconds since the epoch.
    """

    url: str
    max_bytes: int | None = None
    replica: bool = False
    snapshot: str = ""
    published: float = 0.0


def read_attachment(folder: Path) -> Attachment | None:
    """The object store that a folder belongs to, if any.

    Raises
    ------
    IndexFormat
        If the file that says so is damaged.
    """
    for replica, name in _FILES.items():
        file = folder / name
        try:
            text = file.read_text()
        except OSError:
            continue
        try:
            return Attachment(**{**json.loads(text), "replica": replica})
        except (ValueError, TypeError) as error:
            raise IndexFormat(
                f"{file} is damaged ({error}); delete it, and name the object store again with --remote or --index"
            ) from error
    return None


def write_attachment(folder: Path, attachment: Attachment) -> None:
    """Write it down, as a whole."""
    file = folder / _FILES[attachment.replica]
    known = {name: value for name, value in asdict(attachment).items() if name != "replica"}
    new = file.with_suffix(".new")
    new.write_text(json.dumps(known))
    new.replace(file)


def is_replica(folder: Path) -> bool:
    """Whether a folder is a copy that is only read, whoever opens it: the next copy takes its place."""
    return (folder / _FILES[True]).exists()
