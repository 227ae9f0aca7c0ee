"""Rows and batches: a context once, its questions as branches which see the context but not each other."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from ragcache_bench.questions.families import draw
from ragcache_bench.questions.level import Level
from ragcache_bench.questions.worlds import Context
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from reader_training.prompts import draw_wording

_REACH = ("full", "prefixed", "alone")
_BELOW, _MOST = 8, 28  # levels to look back, questions in a row
_NAME = 3  # tokens of a name that is meant
BRANCH = 10_000  # segment numbers: 0 the prefix, 1.. the chunks, BRANCH.. the questions, -1 padding


@dataclass
class Row:
    """Token ids, segment numbers, positions, what is to be predicted, each branch's family, the chunks' reach.

    `meant`: places in the row, and tokens of the name whose value stands there.
    """

    ids: list[int]
    segment: list[int]
    position: list[int]
    label: list[bool]
    families: list[str]
    reach: str
    meant: list[tuple[int, int]] = field(default_factory=list)

    def extend(self, ids: Sequence[int], segment: int, position: int, label: bool = False) -> None:
        """Append a run of tokens, the first at a position, which are to be predicted or not."""
        self.ids += ids
        self.segment += [segment] * len(ids)
        self.position += range(position, position + len(ids))
        self.label += [label] * len(ids)


@dataclass
class Batch:
    """Rows padded to one length: (B, T) tensors; `prefixed` and `full` say what a row's chunks see.

    `meant` (M, 2): flat places, and tokens of the names whose values stand there.
    """

    ids: Tensor
    segment: Tensor
    position: Tensor
    label: Tensor
    prefixed: Tensor
    full: Tensor
    families: list[list[str]]
    meant: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        moved: dict[str, Any] = {name: one.to(device) for name, one in vars(self).items() if isinstance(one, Tensor)}
        return replace(self, **moved)

    def bias(self) -> Tensor:
        """Additive mask, (B, 1, T, T), bf16."""
        query, key = self.segment[:, :, None], self.segment[:, None, :]
        asking = query >= BRANCH
        prefix_key, chunk_key = key == 0, (key > 0) & (key < BRANCH)
        seen = (query == key) | (prefix_key & (asking | self.prefixed[:, None, None]))
        seen |= chunk_key & (asking | self.full[:, None, None])
        causal = torch.ones(query.shape[1], query.shape[1], dtype=torch.bool, device=query.device).tril()
        open_ = torch.zeros(seen.shape, dtype=torch.bfloat16, device=seen.device)
        return open_.masked_fill_(~(seen & causal), float("-inf"))[:, None]


class Encoder:
    """Texts to ids, each alone.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        The reader's.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._backend = tokenizer.backend_tokenizer
        self.end = tokenizer.convert_tokens_to_ids("<|end|>")
        self.size = len(tokenizer)

    def __call__(self, texts: list[str]) -> list[list[int]]:
        """Return ids per text."""
        return [e.ids for e in self._backend.encode_batch(texts, add_special_tokens=False)]


def make_row(rng: random.Random, encode: Encoder, context: Context, foreign: float, reach: str, most: int) -> Row:
    """Lay out `context` and up to `most` of its questions in one wording.

    Parameters
    ----------
    rng, encode, context
        Randomness, tokenizer, what to lay out.
    foreign : float
        See `draw_wording`.
    reach : str
        What a chunk sees beside itself: `full` (everything before), `prefixed` (the prompt's beginning), `alone`.
    most : int
        Questions, at most.
    """
    wording, questions = draw_wording(rng, foreign), context.questions[:most]
    texts = [wording.before, *(c + "\n\n" for c in context.chunks)]
    asked = [text for q in questions for text in (wording.ask.format(q=q.text) + wording.after, " " + q.reply)]
    meant = [t for i, *ends, name in context.meant for t in (*(context.chunks[i][:end] for end in ends), " " + name)]
    pieces = encode(texts + asked + meant)
    row = Row([], [], [], [], [q.family for q in questions], reach)
    starts = list[int]()  # of the chunks
    for number, ids in enumerate(pieces[: len(texts)]):
        row.extend(ids, number, len(row.ids))
        starts.append(len(row.ids))
    start = len(row.ids)
    named = pieces[len(texts + asked) :] if reach == "full" or context.separable else []
    for (chunk, *_), words, said, name in zip(context.meant, named[::3], named[1::3], named[2::3], strict=False):
        places = range(starts[chunk] + len(words) - 1, starts[chunk] + len(said) + 1)  # to the value's first token
        row.meant += [(at, token) for at in places for token in name[:_NAME]]
    for j in range(len(questions)):
        ask, answer = pieces[len(texts) + 2 * j], pieces[len(texts) + 2 * j + 1]
        row.extend(ask, BRANCH + j, start)
        row.extend([*answer, encode.end], BRANCH + j, start + len(ask), label=True)
    return row


def collate(rows: list[Row]) -> Batch:
    """Pad `rows` to the longest."""
    length = max(len(r.ids) for r in rows)

    def pad(lists: list[list[int]] | list[list[bool]], value: int) -> Tensor:
        return torch.tensor([[*x, *[value] * (length - len(x))] for x in lists])

    return Batch(
        pad([r.ids for r in rows], 0), pad([r.segment for r in rows], -1), pad([r.position for r in rows], 0),
        pad([r.label for r in rows], 0).bool(), torch.tensor([r.reach != "alone" for r in rows]),
        torch.tensor([r.reach == "full" for r in rows]), [r.families for r in rows],
        torch.tensor([[i * length + at, token] for i, r in enumerate(rows) for at, token in r.meant]).view(-1, 2),
    )  # fmt: skip


class Questions:
    """An endless stream of batches of contexts at a level, similar lengths together.

    Parameters
    ----------
    encode : Encoder
        The tokenizer.
    rng : random.Random
        Source of randomness.
    tokens : int
        Tokens per batch.
    blocked : float
        Share of the contexts whose chunks need others that are read chunk by chunk all the same: the control reader has
        every chance to learn the question's side of it.
    """

    def __init__(self, encode: Encoder, rng: random.Random, tokens: int, blocked: float = 0.0) -> None:
        self._encode, self._rng, self._tokens, self._blocked = encode, rng, tokens, blocked
        self._ready: list[list[Row]] = []

    def next(self, levels: tuple[Level, ...], current: int) -> Batch:
        """Return a batch; seven rows in eight at `levels[current]`, the others up to `_BELOW` levels below."""
        if not self._ready:
            low = max(0, current - _BELOW)
            rows = [self._row(levels[current if self._rng.random() < 0.88 else self._rng.randint(low, current)])
                    for _ in range(max(16, 12 * self._tokens // levels[current].tokens))]  # fmt: skip
            self._ready = _bucket(rows, self._tokens)
            self._rng.shuffle(self._ready)
        return collate(self._ready.pop())

    def _row(self, level: Level) -> Row:
        while True:
            context = draw(self._rng, level)
            row = make_row(self._rng, self._encode, context, level.wordings, self._reach(context.separable), _MOST)
            if row.families and len(row.ids) <= level.tokens + 700:
                return row

    def _reach(self, separable: bool) -> str:
        apart = 0.6 if separable else self._blocked
        return self._rng.choices(_REACH, (1 - apart, apart / 2, apart / 2))[0]


def _bucket(rows: list[Row], tokens: int) -> list[list[Row]]:
    out: list[list[Row]] = []
    for row in sorted(rows, key=lambda r: len(r.ids)):
        if out and len(row.ids) * (len(out[-1]) + 1) <= tokens:
            out[-1].append(row)
        else:
            out.append([row])
    return out


def repeat_batch(rng: random.Random, size: int, tokens: int) -> Batch:
    """Random tokens in short segments, then the same segments shuffled: teaches look-up and copy.

    Short rows teach it first: with 8,192 tokens and rows of 64 and more, nothing had been learnt after 1.8 million.
    """
    length = rng.choice((12, 16, 24, 32, 64, 128))
    rows = []
    for _ in range(max(2, tokens // length)):
        segments: list[list[int]] = []
        while sum(map(len, segments)) < length // 2:
            segments.append([rng.randrange(6, size) for _ in range(rng.randint(2, 6))])
        first = [1, *(t for s in segments for t in s)]
        again = rng.sample(segments, len(segments))
        ids = [*first, *(t for s in again for t in s)]
        label = [False] * len(first) + [i > 0 for s in again for i in range(len(s))]
        rows.append(Row(ids, [0] * len(ids), list(range(len(ids))), label, [], "full"))
    return collate(rows)
