"""One answer of a benchmark, and the file that keeps all of them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import xxhash

from ragcache.errors import InvalidArgument


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
    em, f1 : float
        Against the accepted answers; against full prefill's own answer where the question states none.
    charged : float or None
        Share of selectable tokens computed; None where nothing was selectable.
    charged_flops : float
        FLOPs before the first token over those of full prefill.
    ttft_ms : float
        Milliseconds to the first token.
    kl : float or None
        KL(full || this) of the first token's distribution, nats.
    gap : int or None
        Chunks between header and fact, where the question has such a pair.
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
    ttft_ms: float
    kl: float | None = None
    gap: int | None = None


_FIELDS = {field.name for field in fields(Record)}


class Journal:
    """A JSONL file that records are appended to, a question's at a time.

    Parameters
    ----------
    path : Path
        Created, with its folder, when the first record comes.

    Attributes
    ----------
    known : dict of str to Record
        By key: what is in the file.

    Raises
    ------
    InvalidArgument
        If the file holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known = {record.key: record for record in _read(path)}

    def add(self, records: Sequence[Record]) -> None:
        """Append records."""
        lines = "".join(json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in records)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:  # in one write, so that two runs may share the file
            file.write(lines.encode())
        self.known |= {record.key: record for record in records}


def digest(*parts: str) -> str:
    """Digest of some texts, for `Record.key`."""
    return xxhash.xxh3_128_hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _read(raw: Path) -> Iterator[Record]:
    """Answers of an earlier run; cuts off the half line that a killed run left."""
    if not raw.exists():
        return
    content = raw.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with raw.open("r+b") as file:
            file.truncate(whole)
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InvalidArgument(
                f"line {number} of {raw} is no answer of a benchmark; move the file away, or name another --out"
            ) from error
        if isinstance(values, dict) and set(values) == _FIELDS:  # else made by another version
            yield Record(**values)
