"""How good an answer is, and how sure a difference is."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragcache.engine.verify import divergence as divergence  # what the server counts, too
from ragcache.engine.verify import wilson_interval

_ARTICLES = re.compile(r"\b(a|an|the)\b")
#: ASCII's, and what Chinese and Japanese write: their own, and full-width forms.
_PUNCTUATION = dict.fromkeys(
    [
        *map(ord, string.punctuation),
        *(code for code in (*range(0x3000, 0x3040), *range(0xFF00, 0xFFF0)) if category(chr(code)).startswith("P")),
    ]
)
RESAMPLES = 2000


def normalise(text: str) -> str:
    """Lower case without punctuation, articles and surplus white space, as SQuAD's scorer has it (1606.05250).

    A text of articles alone keeps them, for "A" may be a choice: it is neither "The" nor an empty answer.
    """
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join((_ARTICLES.sub(" ", plain).strip() or plain).split())


def agrees(answer: str, other: str) -> bool:
    """Whether two answers are the same once normalised; with full prefill's answer, this is agreement."""
    return normalise(answer) == normalise(other)


def exact_match(answer: str, accepted: Sequence[str]) -> float:
    """1.0 where the answer is one of those accepted, else 0.0."""
    return float(any(agrees(answer, gold) for gold in accepted))


def token_f1(answer: str, accepted: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over words, the best over the accepted answers; in [0, 1]."""
    return max((_f1(normalise(answer).split(), normalise(gold).split()) for gold in accepted), default=0.0)


@dataclass(frozen=True)
class Interval:
    """A mean and the range that holds 95 % of its resampled means."""

    mean: float
    low: float
    high: float


def bootstrap(differences: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Paired bootstrap of a mean difference: questions are drawn with replacement, percentiles 2.5 and 97.5.

    Parameters
    ----------
    differences : array_like, (questions,)
        One score minus the other, question by question; at least one.
    seed : int
        Of the draws.
    resamples : int
        Number of draws.
    """
    values = np.asarray(differences, dtype=np.float64)
    return bootstrap_ratio(values, np.ones_like(values), seed=seed, resamples=resamples)


def bootstrap_ratio(parts: ArrayLike, wholes: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The same of a ratio of two sums over the same questions, such as what is recovered over what was lost.

    Parameters
    ----------
    parts, wholes : array_like, (questions,)
        Numerator and denominator, question by question; the sum of `wholes` is above 0.
    seed : int
        Of the draws.
    resamples : int
        Number of draws; those whose denominator is not above 0 have no ratio and are left out.
    """
    part, whole = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    drawn = _drawn(whole.size, seed, resamples)
    over, under = drawn @ part, drawn @ whole  # (resamples,)
    low, high = np.percentile(over[under > 0] / under[under > 0], [2.5, 97.5])
    return Interval(float(part.sum() / whole.sum()), float(low), float(high))


@lru_cache(maxsize=4)
def _drawn(size: int, seed: int, resamples: int) -> NDArray[np.float64]:
    """How often each resample draws each question, (resamples, questions); the same for every row of a table."""
    draws = np.random.default_rng(seed).integers(0, size, size=(resamples, size))
    return np.stack([np.bincount(draw, minlength=size) for draw in draws]).astype(np.float64)


def wilson(share: float, n: int) -> Interval:
    """A share of `n` questions with its interval."""
    return Interval(share, *wilson_interval(share, n))


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    if not words or not gold:
        return float(words == gold)
    shared = sum((Counter(words) & Counter(gold)).values())
    return 2 * shared / (len(words) + len(gold))
