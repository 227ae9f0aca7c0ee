"""A certificate: how often full prefill confirms a method's answers, of one model over one index, kept beside it."""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from ragcache.engine.engine import Engine
from ragcache.engine.request import RequestOptions
from ragcache.engine.verify import Given, Verification, verify_by_full_prefill, wilson_interval
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.report import Progress, ignore_progress
from ragcache.store import is_encrypted

_FOLDER = "certificates"
_WORST = 5
_WORD = re.compile(r"[^\W\d_]{4,}")

#: Finds the chunks that a question is asked over.
Retrieve = Callable[[str], Sequence[Chunk]]


@dataclass(frozen=True)
class Certificate:
    """What was found; `written` is seconds since 1970, and the rest as `ragcache certify --json` prints it.

    Attributes
    ----------
    model, fingerprint, dtype : str
        Which model answered, by name and by all that makes it what it is.
    method : str
        The row of the method table.
    recompute : float or None
        Its share of recomputed tokens.
    encoding : str
        The recipe of the KV that it loads.
    codec : str
        How that KV is written in the index, as `ragcache ingest --kv` names it.
    chunks, edition : int
        How many the index had, and as of which of its changes.
    questions, confirmed : int
        How many were asked, and in how many full prefill says the same, token by token.
    low, high : float
        The 95 % interval of that share, after Wilson.
    first_token_kl : float
        Mean KL(full prefill || reuse) of the first token, nats.
    worst : list of dict
        Questions to which it says something else, the most different first.
    written : float
        When.
    """

    model: str
    fingerprint: str
    dtype: str
    method: str
    recompute: float | None
    encoding: str
    codec: str
    chunks: int
    edition: int
    questions: int
    confirmed: int
    low: float
    high: float
    first_token_kl: float
    worst: list[dict[str, Any]]
    written: float

    @property
    def share(self) -> float:
        """Of the answers, those that were confirmed."""
        return self.confirmed / self.questions

    def write(self, index: Path) -> Path:
        """Write it into an index's folder, in the place of an earlier one of its method; gives the file.

        Beside an encrypted index it lies without the questions and answers.
        """
        file = index / _FOLDER / f"{self.method}.json"
        file.parent.mkdir(mode=0o700, exist_ok=True)
        new = file.with_suffix(".new")
        kept = replace(self, worst=[]) if is_encrypted(index) else self
        new.write_text(json.dumps(asdict(kept), indent=2) + "\n", encoding="utf-8")
        new.replace(file)
        return file

    @classmethod
    def read_all(cls, index: Path) -> Iterator[Self]:
        """Those of an index, by method; what is none of them is left out."""
        for file in sorted((index / _FOLDER).glob("*.json")):
            try:
                yield cls(**json.loads(file.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue


def certify(
    engine: Engine,
    questions: Sequence[str],
    retrieve: Retrieve,
    method: str,
    max_new_tokens: int = 64,
    progress: Progress = ignore_progress,
) -> Certificate:
    """Answer questions from reused KV, and have full prefill of the same prompts say whether it would say the same.

    Parameters
    ----------
    engine : Engine
        Answers.
    questions : sequence of str
        At least one.
    retrieve : callable
        Finds the chunks of each.
    method : str
        A row of the table that loads KV.
    max_new_tokens : int
        Most tokens of an answer.
    progress : callable
        As `ragcache.report.Progress`.

    Raises
    ------
    InvalidArgument
        If the method loads nothing, or there are no questions.
    """
    row, index = find_method(method), engine.index
    if row.encode is None:
        raise InvalidArgument(f"method {row.name!r} reuses nothing, so full prefill confirms it; name another --method")
    if not questions:
        raise InvalidArgument("there are no questions; give some, a line each, with --questions FILE")
    found: list[tuple[str, str, Verification]] = []
    for number, question in enumerate(questions):
        progress("verify", number, len(questions))
        options = RequestOptions(row, sampling=Sampling(max_new_tokens=max_new_tokens))
        request = engine.requests.from_question(question, retrieve(question), options)
        stream = engine.start(request)
        found.append((question, stream.answer.text, verify_by_full_prefill(Given.of(request, stream), index)))
    progress("verify", len(questions), len(questions))
    return _summarise(index, row.name, None if row.recompute is None else request.ratio, found)


def generate_questions(index: Index, count: int, seed: int = 0) -> list[str]:
    """Questions about what an index has, each in the rarest words of a chunk; fewer where it has fewer chunks."""
    rows = sorted(index.catalog.all_chunks(), key=lambda row: row.id)
    often = Counter(word for row in rows for word in set(_WORD.findall(row.body.lower())))
    asked = []
    for row in random.Random(seed).sample(rows, len(rows)):
        words = sorted(set(_WORD.findall(row.body)), key=lambda word: (often[word.lower()], word))[:3]
        if words:
            asked.append(f"What is said about {' and '.join(words)}?")
    return list(dict.fromkeys(asked))[:count]


def _summarise(
    index: Index, method: str, recompute: float | None, found: Sequence[tuple[str, str, Verification]]
) -> Certificate:
    confirmed = sum(one.confirmed for *_, one in found)
    low, high = wilson_interval(confirmed / len(found), len(found))
    others = [(question, answer, one) for question, answer, one in found if not one.confirmed]
    others.sort(key=lambda one: -one[2].first_token_kl)
    encode = find_method(method).encode
    return Certificate(
        model=index.reader.name,
        fingerprint=index.reader.fingerprint,
        dtype=str(index.reader.model.dtype).removeprefix("torch."),
        method=method,
        recompute=recompute,
        encoding="" if encode is None else encode.recipe,
        codec=index.codec.name,
        chunks=index.catalog.stats()["chunks"],
        edition=index.catalog.edition(),
        questions=len(found),
        confirmed=confirmed,
        low=low,
        high=high,
        first_token_kl=fmean(one.first_token_kl for *_, one in found),
        worst=[{"question": question, "answer": answer, **asdict(one)} for question, answer, one in others[:_WORST]],
        written=time.time(),
    )
