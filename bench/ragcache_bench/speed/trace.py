"""Traces of questions: which chunks each of them comes with, drawn or as somebody's users asked them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

import torch

from ragcache.errors import InvalidArgument

Prompts = Sequence[Sequence[int]]

_FILES = ("0_trace.jsonl", "2_passages.jsonl")


class Requests(Protocol):
    """A trace. Chunks have numbers."""

    @property
    def prompts(self) -> Prompts:
        """Chunks of each question, none of them twice, in the prompt's order."""

    @property
    def lengths(self) -> Sequence[int]:
        """Tokens of each chunk there is."""

    @property
    def about(self) -> dict[str, Any]:
        """What a result says of it."""


@dataclass(frozen=True)
class Trace:
    """A trace that is drawn: popular chunks often, in ever other company and orders.

    Attributes
    ----------
    questions : int
        How many.
    chunks : int
        Of each prompt.
    tokens : int
        Of each chunk.
    pool : int
        Chunks there are.
    exponent : float
        Zipf's: the k-th most popular chunk is drawn with weight k ** -exponent.
    seed : int
        Of the draws.

    Raises
    ------
    InvalidArgument
        If a prompt takes more chunks than there are.
    """

    questions: int = 60
    chunks: int = 8
    tokens: int = 256
    pool: int = 200
    exponent: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.chunks > self.pool:
            raise InvalidArgument(f"prompts of {self.chunks} chunks cannot be drawn from a pool of {self.pool}")

    @cached_property
    def prompts(self) -> list[list[int]]:
        """Chunks of each question; their order says nothing of popularity."""
        source = torch.Generator().manual_seed(self.seed)
        weights = torch.arange(1, self.pool + 1, dtype=torch.float64) ** -self.exponent  # (pool,)
        found = [torch.multinomial(weights, self.chunks, generator=source) for _ in range(self.questions)]
        return [row[torch.randperm(self.chunks, generator=source)].tolist() for row in found]

    @property
    def lengths(self) -> list[int]:
        """The same for all."""
        return [self.tokens] * self.pool

    @property
    def about(self) -> dict[str, Any]:
        """What it was drawn by."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Recorded:
    """A trace as users asked it; its chunks are numbered in the order of their ids.

    Attributes
    ----------
    name : str
        Where it comes from.
    digest : str
        Of what it was read from, and of how much of that.
    prompts : sequence of sequence of int
        As in `Requests`.
    lengths : sequence of int
        As in `Requests`.
    """

    name: str
    digest: str
    prompts: Prompts = field(repr=False)
    lengths: Sequence[int] = field(repr=False)

    @property
    def about(self) -> dict[str, Any]:
        """Its name, and what it is like."""
        return {
            "name": self.name, "questions": len(self.prompts), "pool": len(self.lengths),
            "tokens": fmean(prompt_tokens(self)), "seen_before": seen_before(self), "begin_alike": begin_alike(self),
        }  # fmt: skip

    def only_asked(self) -> "Recorded":
        """The same without the chunks that no question came with."""
        numbers = {chunk: number for number, chunk in enumerate(sorted({one for row in self.prompts for one in row}))}
        prompts = [[numbers[chunk] for chunk in row] for row in self.prompts]
        return replace(self, prompts=prompts, lengths=[self.lengths[chunk] for chunk in numbers])


def read_trace(spec: str, count: int | None = None, most: int | None = None) -> Recorded:
    """A recorded trace by its format and its place.

    Parameters
    ----------
    spec : str
        "ragpulse:FOLDER", the folder being `data` of RAGPulse's repository (arXiv 2511.12979).
    count : int, optional
        Questions from the first on; without it all of them.
    most : int, optional
        Tokens that longer chunks are cut to.

    Raises
    ------
    InvalidArgument
        If the format is another, or the folder is not like that.
    """
    form, _, folder = spec.partition(":")
    if form != "ragpulse" or not folder:
        raise InvalidArgument(f"--data {spec} is no trace; give ragpulse:FOLDER")
    return read_ragpulse(Path(folder), count, most)


def read_ragpulse(folder: Path, count: int | None = None, most: int | None = None) -> Recorded:
    """The passages of RAGPulse's requests, in their order, as far as a request has some; as in `read_trace`."""
    texts = [_text(folder / name) for name in _FILES]
    requests, passages = (_lines(text) for text in texts)
    try:
        known = {int(one["passage_id"]): int(one["token_length"]) for one in passages}
        asked = [[int(one) for one in request["hash_ids"]["passages_ids"]] for request in requests]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument(f"{folder} is not as RAGPulse has it: {error!r}; get its folder `data` again") from error
    rows = [row for ids in asked if (row := [one for one in dict.fromkeys(ids) if known.get(one, 0) > 0])][:count]
    if not rows:
        raise InvalidArgument(f"no request in {folder / _FILES[0]} has passages of {_FILES[1]}; get both files again")
    numbers = {one: number for number, one in enumerate(sorted(one for one, tokens in known.items() if tokens > 0))}
    lengths = [min(known[one], most or known[one]) for one in numbers]
    digest = blake2b("\n".join([*texts, str(count), str(most)]).encode(), digest_size=8).hexdigest()
    return Recorded("RAGPulse", digest, [[numbers[one] for one in row] for row in rows], lengths)


def prompt_tokens(trace: Requests) -> list[int]:
    """Tokens of each question's chunks."""
    return [_tokens(trace, prompt) for prompt in trace.prompts]


def seen_before(trace: Requests) -> float:
    """Share of the chunks' tokens that an earlier question had, at whatever place."""
    known, seen = set[int](), 0
    for prompt in trace.prompts:
        seen += _tokens(trace, (chunk for chunk in prompt if chunk in known))
        known.update(prompt)
    return seen / sum(prompt_tokens(trace))


def begin_alike(trace: Requests) -> float:
    """Share of the chunks' tokens that an earlier question began with, too: what a prefix cache without limit has.

    Whatever stands in front of the chunks is taken to be the same for all.
    """
    known, seen = set[tuple[int, ...]](), 0
    for prompt in trace.prompts:
        starts = [tuple(prompt[: end + 1]) for end in range(len(prompt))]
        seen += _tokens(trace, (start[-1] for start in starts if start in known))
        known.update(starts)
    return seen / sum(prompt_tokens(trace))


def _tokens(trace: Requests, chunks: Iterable[int]) -> int:
    return sum(trace.lengths[chunk] for chunk in chunks)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise InvalidArgument(
            f"{path} cannot be read ({error}); name the folder `data` of RAGPulse's repository"
        ) from error


def _lines(text: str) -> list[Any]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise InvalidArgument(f"a line of RAGPulse's files is no JSON: {error}; get its folder `data` again") from error
