"""Every contender answers every question, one after the other, and each answer is kept."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from pathlib import Path

import xxhash

from ragcache.encode import Encoder
from ragcache.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.evaluate.contenders import Contender
from ragcache.evaluate.metrics import exact_match, token_f1
from ragcache.evaluate.tasks import Example
from ragcache.index import Index, Neighbours
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import Answer, CacheReport
from ragcache.retrieve import Embedder, neighbours

#: Called with the stage, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


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
        Against the accepted answers.
    charged : float or None
        Share of selectable tokens computed; None where nothing was selectable.
    charged_flops : float
        FLOPs before the first token over those of full prefill.
    ttft_ms : float
        Milliseconds to the first token.
    kl : float
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


def run(
    reader: Reader,
    tasks: Mapping[str, Sequence[Example]],
    field: Sequence[Contender],
    raw: Path,
    *,
    embedder: Embedder | None = None,
    max_new_tokens: int = 16,
    progress: Progress | None = None,
) -> list[Record]:
    """Answer every question with every contender.

    The chunks of a task's questions go into one temporary index, each encoded once per encoding; a fused chunk's
    neighbours come from that whole pool, not from its own question's chunks. The contenders take turns on each
    question, in rotating order, so that whatever else the machine does hits all of them alike.

    Parameters
    ----------
    reader : Reader
        Who answers.
    tasks : mapping of str to sequence of Example
        Questions by task.
    field : sequence of Contender
        Who takes part.
    raw : Path
        JSONL that every answer is appended to; what is there already is not asked again.
    embedder : Embedder, optional
        Finds neighbours; the default one otherwise.
    max_new_tokens : int
        Most tokens of an answer.
    progress : callable, optional
        Called after each step.

    Returns
    -------
    list of Record
        One per task, question and contender.

    Raises
    ------
    InvalidArgument
        If `raw` is some other file.
    PromptTooLong
        If a question's chunks do not fit the reader.
    """
    known = {record.key: record for record in _read(raw)}
    sampling = Sampling(max_new_tokens=max_new_tokens)
    taken: list[Record] = []
    for name, examples in tasks.items():
        work = _Run(reader, name, examples, field, embedder or Embedder(), sampling, progress or _silent)
        taken += work.records(known, raw)
    return taken


def charged(report: CacheReport) -> float | None:
    """The share of selectable tokens computed; None where nothing was selectable, which 0 would make look free."""
    return report.charged if any(chunk.cache == "hit" for chunk in report.chunks) else None


@dataclass(frozen=True)
class _Run:
    """One task's questions, and who answers them."""

    reader: Reader
    task: str
    examples: Sequence[Example]
    field: Sequence[Contender]
    embedder: Embedder
    sampling: Sampling
    progress: Progress

    def records(self, known: dict[str, Record], raw: Path) -> list[Record]:
        """What is known, and after it what had to be asked."""
        turns = list(self._turns())
        open_turns = [turn for turn in turns if turn[0] not in known]
        if open_turns:
            with tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder, Index(folder, self.reader) as index:
                self._ask(index, open_turns, known, raw)
        return [known[key] for key, _, _ in turns]

    def _turns(self) -> Iterator[tuple[str, Example, Contender]]:
        for number, example in enumerate(self.examples):
            first = number % len(self.field)
            for who in [*self.field[first:], *self.field[:first]]:
                yield self._key(example, who), example, who

    def _key(self, example: Example, who: Contender) -> str:
        asked = (example.id, example.question, *example.chunks, *example.answers)
        return _digest(
            self.reader.fingerprint, self._pool, *asked, repr(who), self.embedder.name, repr(self.sampling)
        )

    @cached_property
    def _pool(self) -> str:
        return _digest(*(text for example in self.examples for text in example.chunks))

    def _ask(
        self, index: Index, turns: list[tuple[str, Example, Contender]], known: dict[str, Record], raw: Path
    ) -> None:
        ids = self._fill(index)
        engine = Engine(self.reader, index)
        raw.parent.mkdir(parents=True, exist_ok=True)
        with raw.open("a", encoding="utf-8") as lines:
            for done, (key, example, who) in enumerate(turns, 1):
                chunks = index.chunks([ids[text] for text in example.chunks])
                answer = engine.answer(
                    example.question, chunks, method=who.method, recompute=who.recompute, sampling=self.sampling
                )
                known[key] = _record(key, self.task, example, who, answer)
                lines.write(json.dumps(asdict(known[key]), ensure_ascii=False) + "\n")
                lines.flush()
                self.progress(f"{self.task}: answer", done, len(turns))

    def _fill(self, index: Index) -> dict[str, str]:
        """Put every chunk into the index, once however many questions share it; ids by text."""
        ids: dict[str, str] = {}
        for done, example in enumerate(self.examples, 1):
            new = [text for text in dict.fromkeys(example.chunks) if text not in ids]
            index.put(example.id, "", [(text, 0, len(text)) for text in new], {})
            document = index.catalog.document_by_source(example.id)
            ids |= {chunk.text: chunk.id for chunk in index.catalog.chunks_of(document.id if document else "")}
            self.progress(f"{self.task}: index", done, len(self.examples))
        near = _neighbours(ids, self.embedder)
        for encoder in _encoders(self.field):
            for done, _ in enumerate(index.encode(encoder, neighbours=near), 1):
                self.progress(f"{self.task}: encode {encoder.recipe}", done, len(ids))
        return ids


def _encoders(field: Sequence[Contender]) -> Iterable[Encoder]:
    """One encoder per recipe, what an encoding builds on before it."""
    found: dict[str, Encoder] = {}
    for encoder in (who.method.encode for who in field):
        for one in (encoder and encoder.before, encoder):
            if one is not None:
                found.setdefault(one.recipe, one)
    return found.values()


def _neighbours(ids: Mapping[str, str], embedder: Embedder) -> Neighbours:
    """Similar chunks of the whole pool, searched when the first encoder asks."""
    keys = list(ids.values())

    @cache
    def table(count: int) -> dict[str, list[str]]:
        found = neighbours(embedder.embed(list(ids)), keys, list(ids), count)
        return {key: [keys[i] for i in near] for key, near in zip(keys, found, strict=True)}

    return lambda chunk, count: table(count)[chunk]


def _record(key: str, task: str, example: Example, who: Contender, answer: Answer) -> Record:
    report = answer.report
    return Record(
        key=key,
        task=task,
        id=example.id,
        method=who.method.name,
        recompute=who.recompute,
        seed=who.seed,
        answer=answer.text,
        em=exact_match(answer.text, example.answers),
        f1=token_f1(answer.text, example.answers),
        charged=charged(report),
        charged_flops=report.charged_flops,
        ttft_ms=report.ms.first_token,
    )


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


def _digest(*parts: str) -> str:
    return xxhash.xxh3_128_hexdigest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""
