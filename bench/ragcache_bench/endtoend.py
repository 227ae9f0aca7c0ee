"""The demo corpus, asked as a user asks: retrieval and reading scored apart.

What a method loses must not be mixed up with what retrieval missed, so `recall` (all evidence was retrieved) stands
beside `score` (the answer is right) and `score_found` (right, of those whose evidence was retrieved).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from ragcache.bundled import CorpusQuestion
from ragcache.index.chunks import Chunk, order_by_document
from ragcache.model.decode import Sampling
from ragcache.rag import RagCache
from ragcache.report import Progress
from ragcache_bench.contenders import Contender
from ragcache_bench.metrics import bootstrap, exact_match


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
    rag: RagCache, questions: Sequence[CorpusQuestion], field: Sequence[Contender], *, top_k: int, progress: Progress
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
    answered: dict[tuple[str, str, float | None], list[_Answer]] = {}
    for done, asked in enumerate(questions, 1):
        chunks = order_by_document(rag.retrieve(asked.question, top_k=top_k))
        for who in field:
            said = rag.engine.answer(
                asked.question, chunks, method=who.method, recompute=who.recompute, sampling=Sampling(max_new_tokens=24)
            )
            outcome = _Answer(exact_match(said.text, asked.accepted), _holds(chunks, asked), asked.unseen_phrasing)
            answered.setdefault((asked.kind, who.method.name, who.recompute), []).append(outcome)
        progress("ask", done, len(questions))
    return [_row(key, answers, top_k) for key, answers in answered.items()]


class _Answer(NamedTuple):
    right: float
    found: bool
    unseen: bool


def _holds(chunks: Sequence[Chunk], question: CorpusQuestion) -> bool:
    """Whether every sentence of the evidence was retrieved, as a whole."""
    return all(any(sentence in chunk.text for chunk in chunks) for sentence in question.evidence)


def _row(key: tuple[str, str, float | None], answers: Sequence[_Answer], top_k: int) -> Row:
    score = bootstrap([one.right for one in answers])
    recall = fmean(one.found for one in answers)
    parts = ([one.right for one in answers if one.found], [one.right for one in answers if one.unseen])
    found, unseen = (fmean(part) if part else None for part in parts)
    return Row(*key, len(answers), top_k, recall, score.mean, score.low, score.high, found, unseen)
