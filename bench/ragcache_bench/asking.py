"""A question, answered by one contender after the other; a task's questions, answered from one temporary index."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from torch import Tensor

from ragcache.encode import Encoder
from ragcache.engine.answer import Answer
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.report import CacheReport, Progress
from ragcache.retrieve import Embedder
from ragcache.store import LocalStore
from ragcache_bench.contenders import Contender
from ragcache_bench.datasets.item import holds
from ragcache_bench.fused_neighbours import Kind, choose_neighbours, documents
from ragcache_bench.lending import Lent
from ragcache_bench.metrics import divergence, exact_match, token_f1
from ragcache_bench.packed_gemm import packed_weights
from ragcache_bench.records import Record
from ragcache_bench.tasks import Example

_NAME = re.compile(r"[A-Z0-9][\w'-]*(?: [A-Z0-9][\w'-]*)*")  # names and numbers, as they stand in a text

Heard = tuple[Answer, Tensor]  # an answer, and its first token's logits


@dataclass(frozen=True)
class Asked:
    """A question and the contenders that still have to answer it, each under its record's key."""

    example: Example
    turns: tuple[tuple[str, Contender], ...]


@dataclass(frozen=True)
class Job:
    """One task's open questions, with all that a process needs to answer them.

    Attributes
    ----------
    task : str
        Its name.
    pool : tuple of Example
        All its questions, answered or not: a fused chunk's neighbours come from the whole pool.
    questions : tuple of Asked
        What is open.
    sampling : Sampling
        How answers are decoded.
    company : str
        Which neighbours those are, one of `ragcache_bench.fused_neighbours.KINDS`.
    together : bool
        Whether a question's contenders answer at once, and untimed.
    """

    task: str
    pool: tuple[Example, ...]
    questions: tuple[Asked, ...]
    sampling: Sampling
    company: Kind = "similar"
    together: bool = False


@contextmanager
def filled(job: Job, reader: Reader, embedder: Embedder, progress: Progress) -> Iterator[tuple[Index, dict[str, str]]]:
    """A temporary index of a job's chunks, each once however many questions share it, and their ids by text.

    Each page is one document, every other chunk a document of its own. It holds every encoding that a contender loads.
    As long as it is open, fp32 models on a CPU multiply with packed weights, whoever answers.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder,
        Index(folder, reader, store=LocalStore.near(reader.device, Path(folder) / "kv", durable=False)) as index,
        packed_weights(),
    ):
        ids = put_pages(job, index, progress)
        near = choose_neighbours(job.company, ids, documents(job.pool), embedder)
        for encoder in _encoders(who for asked in job.questions for _, who in asked.turns):
            for done, _ in enumerate(index.encode(encoder, neighbours=near), 1):
                progress(f"{job.task}: encode {encoder.recipe}", done, len(ids))
        yield index, ids


def put_pages(job: Job, index: Index, progress: Progress) -> dict[str, str]:
    """Put a job's pages and uncached chunks into an index; the ids of the chunks in prompts, by text.

    A text that stands on several pages belongs to the first.
    """
    pages = pages_of(job.pool)
    paged = {text for page in pages for text in page}
    shown = dict.fromkeys(text for example in job.pool for text in example.chunks)
    pages += [(text,) for text in shown if text not in paged]
    ids: dict[str, str] = {}
    for number, page in enumerate(pages, 1):
        index.put(f"{job.task} {number}", "", [(text, 0, len(text)) for text in page], {})
        document = index.catalog.document_by_source(f"{job.task} {number}")
        for chunk in index.catalog.chunks_of(document.id) if document else ():
            ids.setdefault(chunk.text, chunk.id)
        progress(f"{job.task}: index", number, len(pages))
    return {text: ids[text] for text in shown}


def pages_of(examples: Iterable[Example]) -> list[tuple[str, ...]]:
    """The documents that some questions come from, each once, in the order in which they are indexed."""
    return list(dict.fromkeys(page for example in examples for page in example.pages))


def work(job: Job, reader: Reader, embedder: Embedder, progress: Progress) -> Iterator[list[Record]]:
    """Encode a job's chunks, once per encoding, and answer its questions; yields each question's records."""
    with filled(job, reader, embedder, progress) as (index, ids):
        engine = Engine(reader, index)
        for done, asked in enumerate(job.questions, 1):
            chunks = index.chunks([ids[text] for text in asked.example.chunks])
            yield ask(engine, job.task, asked, chunks, job.sampling, together=job.together)
            progress(f"{job.task}: answer", done, len(job.questions))


def ask(
    engine: Engine,
    task: str,
    asked: Asked,
    chunks: Sequence[Chunk],
    sampling: Sampling,
    *,
    together: bool = False,
    lent: Lent | None = None,
) -> list[Record]:
    """One question, answered by each of its contenders; by full prefill anyway, which all are compared with.

    They take turns, so that times to the first token are their own; or all but full prefill answer `together`, in fewer
    and larger forwards, and no times are entered. KV of encodings that are `lent` is not the engine's.
    """
    example, likely = asked.example, _likely(engine.reader, asked.example)

    def answer(who: Contender, heard: Sequence[Heard]) -> Heard:
        drafts = [*(said.token_ids for said, _ in heard), *likely]
        at, there = where(who.method, lent or {}, engine, chunks)
        stream = at.stream(
            example.question, there, method=who.row(example), recompute=who.recompute, sampling=sampling, drafts=drafts
        )
        return stream.answer, stream.logits

    if not together:
        _warm_up(engine, asked, chunks, lent or {})
    turns = dict(asked.turns)
    full = next((key for key, who in asked.turns if who.method.name == "full"), "")
    turns.setdefault(full, Contender(find_method("full")))
    heard: dict[str, Heard] = {}
    if together:
        heard[full] = answer(turns[full], ())
        others = [partial(answer, who, [heard[full]]) for key, who in turns.items() if key != full]
        heard |= zip((key for key in turns if key != full), engine.reader.run_batch(others), strict=True)
    else:
        for key, who in turns.items():
            heard[key] = answer(who, [*heard.values()][::-1])
    said, truth = heard[full]
    accepted = example.answers or (said.text,)
    return [
        _record(key, task, example, who, heard[key][0], accepted, divergence(truth, heard[key][1]), timed=not together)
        for key, who in asked.turns
    ]


def _warm_up(engine: Engine, asked: Asked, chunks: Sequence[Chunk], lent: Lent) -> None:
    """Read every encoding's KV once: the first contender must not pay for what later ones find in memory."""
    for row in {who.method.encode: who.row(asked.example) for _, who in asked.turns}.values():
        at, there = where(row, lent, engine, chunks)
        at.prefill(asked.example.question, there, method=row, recompute=None if row.recompute is None else 0.0)


def where(row: Method, lent: Lent, engine: Engine, chunks: Sequence[Chunk]) -> tuple[Engine, Sequence[Chunk]]:
    """Who answers by a row over which chunks: whoever has the KV that it loads."""
    return lent.get(row.encode.recipe if row.encode else "", (engine, chunks))


def _likely(reader: Reader, example: Example) -> list[list[int]]:
    """Token ids of what may well be said, right or wrong, to serve as drafts."""
    names = dict.fromkeys(name for text in example.chunks for name in _NAME.findall(text))
    return [reader.tokenizer.encode(text, add_special_tokens=False) for text in (*example.answers, *names)]


def charged(report: CacheReport) -> float | None:
    """The share of selectable tokens computed; None where nothing was selectable, which 0 would make look free."""
    return report.charged if any(chunk.cache == "hit" for chunk in report.chunks) else None


def _record(
    key: str,
    task: str,
    example: Example,
    who: Contender,
    answer: Answer,
    accepted: Sequence[str],
    kl: float,
    *,
    timed: bool,
) -> Record:
    report = answer.report
    return Record(
        key=key,
        task=task,
        id=example.id,
        method=who.name,
        recompute=who.recompute,
        seed=who.seed,
        answer=answer.text,
        em=exact_match(answer.text, accepted),
        sub_em=float(holds(answer.text, accepted)),
        f1=token_f1(answer.text, accepted),
        charged=charged(report),
        charged_flops=report.charged_flops,
        ttft_ms=report.ms.first_token if timed else None,
        kl=kl,
        gap=example.gap,
    )


def _encoders(field: Iterable[Contender]) -> Iterable[Encoder]:
    """One encoder per recipe, what an encoding builds on before it."""
    found: dict[str, Encoder] = {}
    for encoder in (who.method.encode for who in field):
        for one in (encoder and encoder.base_encoding, encoder):
            if one is not None:
                found.setdefault(one.recipe, one)
    return found.values()
