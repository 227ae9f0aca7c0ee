"""The demo corpus, asked as a user asks: retrieval and reading scored apart.

What a method loses must not be mixed up with what retrieval missed, so `recall` (all evidence was retrieved) stands
beside `score` (the answer is right) and `score_found` (right, of those whose evidence was retrieved).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragcache.bundled import CorpusQuestion
from ragcache.evaluate.contenders import Contender
from ragcache.evaluate.metrics import bootstrap, exact_match
from ragcache.index import Chunk
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache


@dataclass(frozen=True)
class Outcome:
    """One contender's answer to one question, end to end."""

    kind: str
    unseen_phrasing: bool
    method: str
    recompute: float | None
    found: bool
    right: float


@dataclass(frozen=True)
class Row:
    """All questions of a kind, answered by one contender.

    Attributes
    ----------
    kind, method : str
        Which questions, which row of the method table.
    recompute : float or None
        Nominal share.
    n, top_k : int
        Questions; chunks retrieved for each.
    recall : float
        Share whose evidence was all retrieved.
    score, ci_low, ci_high : float
        Exact match with its 95 % interval.
    score_found, score_unseen : float or None
        Exact match where all evidence was retrieved; where the phrasing never occurred in training.
    """

    kind: str
    method: str
    recompute: float | None
    n: int
    top_k: int
    recall: float
    score: float
    ci_low: float
    ci_high: float
    score_found: float | None
    score_unseen: float | None


def run(
    rag: RagCache,
    questions: Sequence[CorpusQuestion],
    field: Sequence[Contender],
    *,
    top_k: int,
    progress: Callable[[str, int, int], None],
) -> list[Row]:
    """Ask every question of every contender; retrieval happens once for each question.

    Parameters
    ----------
    rag : RagCache
        An index of the demo corpus that holds every contender's encoding.
    questions : sequence of CorpusQuestion
        What to ask.
    field : sequence of Contender
        Who takes part.
    top_k : int
        Chunks to retrieve.
    progress : callable
        Told what is being done.
    """
    outcomes: list[Outcome] = []
    for done, question in enumerate(questions):
        outcomes += _asked(rag, question, field, top_k)
        progress("ask", done + 1, len(questions))
    keys = dict.fromkeys((o.kind, o.method, o.recompute) for o in outcomes)
    return [_row(key, [o for o in outcomes if (o.kind, o.method, o.recompute) == key], top_k) for key in keys]


def _asked(rag: RagCache, question: CorpusQuestion, field: Sequence[Contender], top_k: int) -> Iterable[Outcome]:
    chunks = rag.retrieve(question.question, top_k=top_k)
    found = _holds(chunks, question)
    for contender in field:
        answer = rag.engine.answer(
            question.question,
            chunks,
            method=contender.method,
            recompute=contender.recompute,
            sampling=Sampling(max_new_tokens=24),
        )
        right = exact_match(answer.text, question.accepted)
        yield Outcome(
            question.kind, question.unseen_phrasing, contender.method.name, contender.recompute, found, right
        )


def _holds(chunks: Sequence[Chunk], question: CorpusQuestion) -> bool:
    """Whether every sentence of the evidence was retrieved, as a whole."""
    return all(any(sentence in chunk.text for chunk in chunks) for sentence in question.evidence)


def _row(key: tuple[str, str, float | None], outcomes: Sequence[Outcome], top_k: int) -> Row:
    kind, method, recompute = key
    score = bootstrap([o.right for o in outcomes])
    return Row(
        kind,
        method,
        recompute,
        len(outcomes),
        top_k,
        sum(o.found for o in outcomes) / len(outcomes),
        score.mean,
        score.low,
        score.high,
        _mean([o.right for o in outcomes if o.found]),
        _mean([o.right for o in outcomes if o.unseen_phrasing]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
