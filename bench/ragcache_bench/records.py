"""One answer of a benchmark, and the file that keeps answers and measurements, so that a killed run goes on."""

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from io import FileIO
from pathlib import Path
from typing import Any

import xxhash

from ragcache.errors import InvalidArgument, StorageFull, remedy


@dataclass(frozen=True)
class Record:
    """One contender's answer to one question.

    Attributes
    ----------
    key : str
        Digest of everything that decides the answer: a run that is resumed takes only what it would make itself.
    task, id, method, recompute, seed : str, str, str, float or None, int
        Which question, which contender.
    answer : str
        As the reader gave it.
    em, f1, sub_em : float
        Exact match, token F1, and whether an accepted answer stands within this one; against full prefill's own answer
        where the question states none.
    charged : float or None
        Share of selectable tokens computed; None where nothing was selectable.
    charged_flops : float
        FLOPs before the first token over those of full prefill.
    ttft_ms : float or None
        Milliseconds to the first token; None where several contenders were answering at once.
    kl : float or None
        KL(full || this) of the first token's distribution, nats.
    gap : int or None
        Chunks between header and fact, where the question has such a pair.
    session : str
        The run that the time was taken in: times of different ones, or of different machines, do not compare. "" in
        journals of older versions.
    """

    key: str
    task: str
    id: str
    method: str
    recompute: float | None
    seed: int
    answer: str
    em: float
    f1: float
    charged: float | None
    charged_flops: float
    ttft_ms: float | None
    kl: float | None = None
    gap: int | None = None
    sub_em: float = 0.0
    session: str = ""


_FIELDS = {field.name for field in fields(Record)}
_HEAD = b'{"key": "'  # of every line


class Journal:
    """A JSONL file that grows by whole lines, each of which is written once and never changed.

    Parameters
    ----------
    path : Path
        Created, with its folder, when there is something to keep; half a line at its end, left by a kill or a full
        disk, is cut off.

    Attributes
    ----------
    known : dict of str to object
        By key: an answer's `Record`, or a measurement as JSON holds it.
    session : str
        Of the answers that are added; drawn when the journal is opened.

    Raises
    ------
    InvalidArgument
        If the file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.session = path, secrets.token_hex(8)
        self.known: dict[str, Any] = {}
        for entry in _read(path):
            if {*entry, "session"} == _FIELDS:
                self.known[entry["key"]] = Record(**entry)
            elif "value" in entry:  # else an answer made by another version
                self.known[entry["key"]] = entry["value"]

    @property
    def records(self) -> list[Record]:
        """The answers, first to last."""
        return [entry for entry in self.known.values() if isinstance(entry, Record)]

    def add(self, records: Sequence[Record]) -> None:
        """Keep answers that were given in this session.

        Raises
        ------
        StorageFull
            If the disk refuses them; none of them is kept then.
        """
        made = [replace(record, session=self.session) for record in records]
        self._write([asdict(record) for record in made])
        self.known |= {record.key: record for record in made}

    def recall(self, parts: Sequence[str], measure: Callable[[], Any]) -> Any:
        """What was measured under these parts, measured now if it never was.

        Parameters
        ----------
        parts : sequence of str
            Everything that decides the outcome.
        measure : callable
            Gives something that JSON can hold.

        Raises
        ------
        StorageFull
            If the disk refuses it.
        """
        key = digest(*parts)
        if key not in self.known:
            value = measure()
            self._write([{"key": key, "value": value}])
            self.known[key] = value
        return self.known[key]

    def _write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                _append(file, lines.encode())
        except OSError as error:
            reason = f"the disk refused a write to {self.path} ({error.strerror})"
            raise StorageFull(f"{reason}; {remedy(error)}.") from error


def digest(*parts: str) -> str:
    """Digest of some texts, for a key."""
    return xxhash.xxh3_128_hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _append(file: FileIO, lines: bytes) -> None:
    """Write all or nothing, in one write, so that two runs may share the file."""
    begin = file.tell()
    try:
        if file.write(lines) < len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        file.truncate(begin)
        raise


def _read(path: Path) -> Iterator[dict[str, Any]]:
    content = path.read_bytes() if path.exists() else b""
    whole = content.rfind(b"\n") + 1
    lines, rest = content[:whole].splitlines(), content[whole:]
    for number, line in enumerate(lines, 1):
        yield _entry(path, number, line)
    if rest and not lines and not _begun(rest):
        raise _foreign(path, 1)
    if rest:
        with path.open("r+b") as file:
            file.truncate(whole)


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
        if not isinstance(entry["key"], str):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise _foreign(path, number) from error
    return entry


def _begun(rest: bytes) -> bool:
    """Whether half a line can be one of a journal's."""
    return rest.startswith(_HEAD) or _HEAD.startswith(rest)


def _foreign(path: Path, number: int) -> InvalidArgument:
    return InvalidArgument(
        f"line {number} of {path} is no answer of a benchmark; move the file away, or name another --out"
    )
