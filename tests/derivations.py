"""What rows of the method table do, derived anew: stock forwards, eager attention, KV spliced and turned by hand.

Nothing here calls an encoder, selector, schedule or score mod of ours. A chunk's KV is a slice of a stock forward,
moved by a rotation written out here; scores come from `output_attentions` and from stock caches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import torch
from conftest import tiny_model
from dense import Attend
from torch import Tensor
from transformers import DynamicCache

from ragcache.model.architecture import cache_argument
from ragcache.prompt import Prompt

#: As deep as the models of the papers, so that their layers are layers here.
SIZES = {
    "num_hidden_layers": 32, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 16,
}  # fmt: skip
LAYERS = SIZES["num_hidden_layers"]
DOCUMENTS = (
    ("# Tide", "It is based in Oslo.", "The harbour lies near it."),
    ("# Mill", "It grinds rye.", "It has two wheels, one of them iron."),
    ("# Ferry", "She sails on Monday.", "Her master is Mara Voss."),
    ("# Quarry", "Slate is cut here.", "It closed in 1931."),
    ("Nobody knows why the bridge is green.",),
)
TEXTS = tuple(text for document in DOCUMENTS for text in document)
#: Retrieved chunks, by their number in `TEXTS`. The first begins its document, so that it may be exact.
RETRIEVED = (3, 8, 2, 10, 5, 12)
QUESTION = "Where is it based, and who sails?"

#: K and V of each layer, (kv_heads, tokens, head_dim).
KV = list[tuple[Tensor, Tensor]]


@cache
def stock(seed: int = 0) -> Any:
    """The stock model that a tiny reader has, with eager attention; another seed gives another model of its kind."""
    model = tiny_model("llama", **SIZES)
    model.set_attn_implementation("eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters() if seed else ():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.12, generator=generator)
    return model.eval()


@torch.no_grad()
def forward(
    model: Any, ids: Sequence[int], positions: Tensor, past: KV | None = None, sees: Tensor | None = None
) -> tuple[KV, tuple[Tensor, ...], Tensor]:
    """Forward tokens behind `past`: their K and V, attention by layer (heads, rows, keys), and the last one's logits.

    `sees`, (rows, keys) bool, says who attends to whom; all of `past`, and causally among the tokens, by default.
    """
    kept = DynamicCache()
    for layer, (key, value) in enumerate(past or ()):
        kept.update(key[None], value[None], layer)
    before = past[0][0].shape[1] if past else 0
    if sees is None:
        sees = torch.ones(len(ids), before + len(ids), dtype=torch.bool).tril(before)
    found = model(
        input_ids=torch.tensor([list(ids)]), position_ids=positions[None], output_attentions=True, use_cache=True,
        attention_mask=torch.where(sees, 0.0, float("-inf"))[None, None], **cache_argument(model, kept),
    )  # fmt: skip
    own = [(layer.keys[0, :, before:], layer.values[0, :, before:]) for layer in kept.layers]
    return own, tuple(weights[0] for weights in found.attentions), found.logits[0, -1]


def turned(kv: KV, by: int) -> KV:
    """K and V of tokens that move by so many positions: RoPE turns pairs (i, i + d/2) by theta^(-2i/d) each."""
    half = SIZES["head_dim"] // 2
    theta = stock().config.rope_parameters["rope_theta"]
    angle = by * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos().float(), angle.sin().float()
    moved = []
    for key, value in kv:
        left, right = key[..., :half], key[..., half:]
        moved.append((torch.cat([left * cos - right * sin, right * cos + left * sin], -1), value))
    return moved


def joined(parts: Sequence[KV]) -> KV:
    """One behind the other."""
    layers = zip(*parts, strict=True)
    return [tuple(torch.cat([part[i] for part in layer], 1) for i in (0, 1)) for layer in layers]  # type: ignore[misc]


def sliced(kv: KV, tokens: Any) -> KV:
    """Some tokens."""
    return [(key[:, tokens], value[:, tokens]) for key, value in kv]


def length(kv: KV) -> int:
    """Tokens."""
    return kv[0][0].shape[1]


@dataclass(frozen=True)
class Corpus:
    """Token ids of what is read: the system prefix, and every chunk of `DOCUMENTS`."""

    prefix: tuple[int, ...]
    chunks: tuple[tuple[int, ...], ...]
    newline: int

    def before(self, chunk: int) -> list[int]:
        """The chunks before a chunk in its document."""
        first = 0
        for document in DOCUMENTS:
            if chunk < first + len(document):
                return list(range(first, chunk))
            first += len(document)
        raise AssertionError(chunk)

    def neighbours(self, chunk: int, count: int) -> list[int]:
        """The most similar others, the most similar first: here every fifth, round and round."""
        size = len(self.chunks)
        return [(chunk + 5 * step) % size for step in range(1, size)][:count]


#: What a chunk's KV is, and the position of its first token.
Made = tuple[KV, int]


@cache
def behind(ids: tuple[int, ...], chunk: tuple[int, ...]) -> Made:
    """A chunk's slice of one forward, right behind other tokens."""
    everything = [*ids, *chunk]
    kv, _, _ = forward(stock(), everything, torch.arange(len(everything)))
    return sliced(kv, slice(len(ids), None)), len(ids)


def alone(corpus: Corpus, chunk: int) -> Made:
    """Nothing stands in front."""
    return behind((), corpus.chunks[chunk])


def behind_line_ends(corpus: Corpus, chunk: int) -> Made:
    """Four line ends, which are thrown away."""
    return behind((corpus.newline,) * 4, corpus.chunks[chunk])


def behind_prefix(corpus: Corpus, chunk: int) -> Made:
    """The system prefix."""
    return behind(corpus.prefix, corpus.chunks[chunk])


def in_document(corpus: Corpus, chunk: int) -> Made:
    """The system prefix, and what stands before the chunk in its document."""
    text = chain.from_iterable(corpus.chunks[one] for one in corpus.before(chunk))
    return behind((*corpus.prefix, *text), corpus.chunks[chunk])


def behind_neighbours(corpus: Corpus, chunk: int) -> Made:
    """The system prefix and ten neighbours' KV, each made behind the prefix, moved to stand one behind the other."""
    prefix, _ = behind((), corpus.prefix)
    parts, end = [prefix], length(prefix)
    for one in corpus.neighbours(chunk, 10):
        kv, start = behind_prefix(corpus, one)
        parts.append(turned(kv, end - start))
        end += length(kv)
    ids = corpus.chunks[chunk]
    kv, _, _ = forward(stock(), ids, torch.arange(end, end + len(ids)), joined(parts))
    return kv, end


@dataclass(frozen=True)
class Stitched:
    """A prompt, and what is reused of it.

    Attributes
    ----------
    prompt : Prompt
        Its tokens and positions.
    numbers : sequence of int
        The prompt's chunks, by their number in `TEXTS`.
    kv : KV
        Of all that stands before the question.
    selectable : Tensor
        Slots of chunks whose KV isn't what a full prefill would have there, ascending.
    """

    prompt: Prompt
    numbers: Sequence[int]
    kv: KV
    selectable: Tensor

    @property
    def positions(self) -> Tensor:
        """(slots,)"""
        starts = zip(self.prompt.starts, self.prompt.segments, strict=True)
        return torch.cat([torch.arange(start, start + len(segment)) for start, segment in starts])

    @property
    def fresh(self) -> Tensor:
        """Slots of the question and what follows."""
        return torch.arange(self.prompt.slots[self.prompt.question], len(self.prompt))

    @property
    def spans(self) -> list[slice]:
        """Slots of each chunk."""
        return [self.prompt.span(segment) for segment in self.prompt.chunks()]

    def full(self) -> KV:
        """K and V of a full prefill of what stands before the question."""
        end = int(self.fresh[0])
        return forward(stock(), self.prompt.token_ids[:end], self.positions[:end])[0]

    def best(self, scores: Tensor, share: float) -> Tensor:
        """The selectable slots with the highest scores, ascending."""
        order = scores[self.selectable].argsort(descending=True, stable=True)
        return self.selectable[order[: round(share * len(self.selectable))]].sort().values


def stitch(corpus: Corpus, prompt: Prompt, numbers: Sequence[int], make: Callable[[Corpus, int], Made]) -> Stitched:
    """Every chunk's KV at its place, and the prefix's own.

    The first chunk's is exact, and not selectable, if it was made right behind the prefix. So is a fused first chunk:
    its base KV was, and serves there.
    """
    prefix, _ = behind((), corpus.prefix)
    parts, selectable = [prefix], []
    for place, (segment, number) in enumerate(zip(prompt.chunks(), numbers, strict=True)):
        first = make in (behind_prefix, behind_neighbours) or (make is in_document and not corpus.before(number))
        exact = place == 0 and first
        kv, start = (behind_prefix if exact else make)(corpus, number)
        parts.append(turned(kv, prompt.starts[segment] - start))
        if not exact:
            selectable.append(torch.arange(*prompt.slots[segment : segment + 2]))
    return Stitched(prompt, numbers, joined(parts), torch.cat(selectable))


def deviation(stitched: Stitched, of: int) -> Tensor:
    """How far K (0) or V (1) of layer 1 is from a full prefill's, (slots,): squared, summed over heads and dims."""
    change = stitched.full()[1][of] - stitched.kv[1][of]
    return change.pow(2).sum((0, 2))


def attention(stitched: Stitched, layers: Sequence[int], reduce: str) -> Tensor:
    """What the question's own words attend to over the stitched KV, (keys,), averaged over layers."""
    prompt = stitched.prompt
    rows = slice(*prompt.slots[prompt.question : prompt.question + 2])
    _, weights, _ = forward(stock(), prompt.token_ids[rows], stitched.positions[rows], stitched.kv)
    return torch.stack([reduced(weights[layer], reduce) for layer in layers]).mean(0)


def reduced(weights: Tensor, reduce: str) -> Tensor:
    """(heads, rows, keys) to (keys,)."""
    heads, rows, _ = weights.shape
    each = [weights[head, row] for head in range(heads) for row in range(rows)]
    if reduce == "max":
        return torch.stack(each).max(0).values
    if reduce == "norm":
        return sum(((weights[:, row].sum(0) / heads) ** 2 for row in range(rows)), torch.zeros(())).sqrt()
    total = sum(each, torch.zeros(()))
    return total / (heads * rows) if reduce == "mean" else total


def auxiliary(model: Any, stitched: Stitched) -> Tensor:
    """What the question attends to in the last layer of a model that reads it all, in windows of 8 that step by 4."""
    prompt = stitched.prompt
    start, end = prompt.slots[prompt.question : prompt.question + 2]
    _, weights, _ = forward(model, prompt.token_ids[:end], torch.arange(end))
    mass = reduced(weights[-1][:, start:], "mean")
    scores = torch.full_like(mass, float("-inf"))
    for span in stitched.spans:
        for first in range(span.start, span.stop, 4):
            window = slice(first, min(first + 8, span.stop))
            scores[window] = scores[window].clamp(min=float(mass[window].mean()))
            if window.stop == span.stop:
                break
    return scores


def densest_last(stitched: Stitched) -> list[int]:
    """Places of chunks, those with the larger share of the best 15 % of all their tokens behind the others."""
    scores = attention(stitched, range(22, 26), "norm")
    slots = torch.cat([torch.arange(span.start, span.stop) for span in stitched.spans])
    best = set(slots[scores[slots].argsort(descending=True, stable=True)[: round(0.15 * len(slots))]].tolist())
    share = [len(best & set(range(span.start, span.stop))) / (span.stop - span.start) for span in stitched.spans]
    return sorted(range(len(share)), key=share.__getitem__)


def scaled(temperature: float, scale: float, reused: Callable[[int], Tensor]) -> Attend:
    """APE's formula: reused keys among themselves at a temperature, then as one key among the others."""

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        inside = torch.zeros(logits.shape[-1], dtype=torch.bool)
        inside[reused(layer)] = True
        if not inside.any():
            return logits.softmax(-1) @ values
        sharp = logits[..., inside] / temperature
        mass = scale * temperature * sharp.logsumexp(-1, keepdim=True)  # -inf for a row that sees none of them
        weights = torch.cat([logits[..., ~inside], mass], -1).softmax(-1)
        apart = sharp.softmax(-1).nan_to_num() @ values[:, inside]
        return weights[..., :-1] @ values[:, ~inside] + weights[..., -1:] * apart

    return attend


def masked(out: Tensor) -> Attend:
    """Keys that nobody sees."""

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        return logits.index_fill(-1, out, float("-inf")).softmax(-1) @ values

    return attend


def beside_document(corpus: Corpus, stitched: Stitched, chosen: Tensor) -> KV:
    """K and V before the question once chosen tokens were read again, chunk by chunk, each seeing its document too."""
    kv, slots = [(key.clone(), value.clone()) for key, value in stitched.kv], set(chosen.tolist())
    for span, number in zip(stitched.spans, stitched.numbers, strict=True):
        rows = [slot for slot in range(span.start, span.stop) if slot in slots]
        if not rows:
            continue
        left, end = [], span.start
        for one in reversed(corpus.before(number)):
            made, start = in_document(corpus, one)
            end -= length(made)
            left.append(turned(made, end - start))
        kept = [slot for slot in range(span.stop) if slot not in rows]
        beside = sum(map(length, left))
        past = joined([sliced(kv, kept), *left])
        keys = torch.tensor([*kept, *[-1] * beside, *rows])
        ids, at = [stitched.prompt.token_ids[slot] for slot in rows], torch.tensor(rows)
        new, _, _ = forward(stock(), ids, stitched.positions[at], past, keys[None] <= at[:, None])
        for (key, value), (new_key, new_value) in zip(kv, new, strict=True):
            key[:, rows], value[:, rows] = new_key, new_value
    return kv
