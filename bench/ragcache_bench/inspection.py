"""One question under the lens: which tokens reuse gets wrong, which ones a method mends, where the question looks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ragcache.encode import Encoder
from ragcache.engine.answer import Answer
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS, find_method
from ragcache.model.buffer import KVBuffer
from ragcache.model.decode import Sampling
from ragcache.model.deviation import moved
from ragcache.model.plan import ForwardPlan, Positions, ScoreSink
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.report import Progress, ignore_progress
from ragcache.retrieve import Embedder
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.contenders import Contender
from ragcache_bench.references import stock_kv
from ragcache_bench.tasks import Example


@dataclass(frozen=True, eq=False)
class Deviation:
    """How far K and V stand from those of full prefill, token by token, as the study 2603.20218 measures it.

    Attributes
    ----------
    key, value : Tensor
        (layers, slots) fp32: (1/H) sum over kv heads of ||K_full[t] - K[t]||^2, and the same of V.
    """

    key: Tensor
    value: Tensor


@dataclass(frozen=True, eq=False)
class Choice:
    """What a method recomputes for this question, and what it answers.

    Attributes
    ----------
    method, recompute : str, float or None
        The row and its nominal share.
    selected : Tensor
        (slots,) bool: reused tokens that are computed again.
    answer, charged : str, float
        From the engine.
    """

    method: str
    recompute: float | None
    selected: Tensor
    answer: str
    charged: float


@dataclass(frozen=True, eq=False)
class Inspection:
    """What happens to one question. Slots run from the prompt's first token to the last one of its last chunk.

    Attributes
    ----------
    question, full_answer : str
        As asked, and what stock full prefill answers.
    tokens : tuple of str
        The text of each token of the whole prompt; they join to the prompt's text.
    chunks : tuple of range
        Slots of each chunk, in the prompt's order.
    asked : range
        Slots of the question's own words.
    choices : tuple of Choice
        The inspected method, and after it those it is compared with.
    full : Deviation
        Squared norms of full prefill's own K and V: what the others are a share of.
    naive, recomputed_kv : Deviation
        Of naive reuse, and of the inspected method by the time the first token is computed.
    attention_full, attention_reused : Tensor
        (layers, question tokens, slots) fp32: from the question to the context, mean over heads, under full prefill and
        under the method.
    """

    question: str
    full_answer: str
    tokens: tuple[str, ...]
    chunks: tuple[range, ...]
    asked: range
    choices: tuple[Choice, ...]
    full: Deviation
    naive: Deviation
    recomputed_kv: Deviation
    attention_full: Tensor
    attention_reused: Tensor


def inspect(
    reader: Reader,
    index: Index,
    question: str,
    chunks: Sequence[Chunk],
    method: str | Method,
    recompute: float | None = None,
    *,
    others: Sequence[tuple[str | Method, float | None]] = (),
    sampling: Sampling | None = None,
) -> Inspection:
    """Answer one question by full prefill, by naive reuse and by a method, and keep what usually goes by.

    Parameters
    ----------
    reader, index : Reader, Index
        Who answers, and from which KV; what is missing is made.
    question : str
        The user's words.
    chunks : sequence of Chunk
        In the order given.
    method, recompute : str or Method, float, optional
        What to inspect.
    others : sequence of (str or Method, float or None), optional
        Methods whose choice of tokens is shown beside it, in its layout.
    sampling : Sampling, optional
        Greedy by default.

    Raises
    ------
    InvalidArgument
        If the method reuses nothing, or the question is blank.
    PromptTooLong
        If the prompt and the answer do not fit the model.
    """
    rows = [(find_method(method), recompute), *((find_method(one), share) for one, share in others)]
    for row, _ in rows:
        encoder_of(row)  # before anything is computed
    work = _Work(Engine(reader, index), question, chunks, rows[0][0], sampling or Sampling())
    full_answer = work.answer(METHODS["full"], None).text
    ready, naive = work.prefill(*rows[0]), _passed(work.prefill(METHODS["naive"], None))
    reused, prompt = _passed(ready), ready.prompt
    full, context = stock_kv(reader, prompt), reused.context_end
    buffer = reader.buffer(len(prompt))
    buffer.place(0, full)
    return Inspection(
        question=question,
        full_answer=full_answer,
        tokens=texts(reader, prompt),
        chunks=tuple(range(prompt.slots[i], prompt.slots[i + 1]) for i in prompt.chunks()),
        asked=range(prompt.slots[prompt.question], prompt.slots[prompt.question + 1]),
        choices=tuple(work.choice(*row) for row in rows),
        full=_deviation([torch.zeros_like(kv) for kv in full], full, context),
        naive=_deviation(naive.buffer.read(0, context), full, context),
        recomputed_kv=_deviation(reused.buffer.read(0, context), full, context),
        attention_full=_attention(buffer, reused),
        attention_reused=_attention(reused.buffer, reused),
    )


def of_example(
    reader: Reader,
    example: Example,
    pool: Sequence[Example],
    method: str | Method,
    recompute: float | None = None,
    *,
    others: Sequence[tuple[str | Method, float | None]] = (),
    sampling: Sampling | None = None,
    embedder: Embedder | None = None,
    progress: Progress = ignore_progress,
) -> Inspection:
    """The same for a benchmark's question, over its chunks in a temporary index.

    Parameters
    ----------
    reader : Reader
        Who answers.
    example : Example
        The question.
    pool : sequence of Example
        Fused chunks find their neighbours among these questions' chunks and the example's own.
    method, recompute, others, sampling
        As in `inspect`.
    embedder : Embedder, optional
        Finds neighbours; the default one otherwise.
    progress : callable
        Told what is being done.
    """
    rows = [METHODS["naive"], find_method(method), *(find_method(one) for one, _ in others)]
    turns = tuple((row.name, Contender(row)) for row in rows)
    whole = (example, *(one for one in pool if one.id != example.id))
    job = Job(example.task, whole, (Asked(example, turns),), sampling or Sampling())
    with filled(job, reader, embedder or Embedder(), progress) as (index, ids):
        chunks = index.chunks([ids[text] for text in example.chunks])
        return inspect(reader, index, example.question, chunks, method, recompute, others=others, sampling=sampling)


def encoder_of(row: Method) -> Encoder:
    """What a method loads; one that loads nothing is refused.

    Raises
    ------
    InvalidArgument
        If it reuses no KV.
    """
    if row.encode is None:
        raise InvalidArgument(
            f"method {row.name!r} reuses no KV, so there is nothing to inspect; name another row of `ragcache methods`"
        )
    return row.encode


@dataclass(frozen=True)
class _Work:
    """One question in one layout, that of the inspected row."""

    engine: Engine
    question: str
    chunks: Sequence[Chunk]
    row: Method
    sampling: Sampling

    def answer(self, row: Method, recompute: float | None) -> Answer:
        return self.engine.answer(
            self.question, self._chunks(row), method=self._placed(row), recompute=recompute, sampling=self.sampling
        )

    def prefill(self, row: Method, recompute: float | None) -> Prefilled:
        return self.engine.prefill(self.question, self._chunks(row), method=self._placed(row), recompute=recompute)

    def choice(self, row: Method, recompute: float | None) -> Choice:
        selected, answer = self.prefill(row, recompute).recomputed, self.answer(row, recompute)
        return Choice(row.name, answer.report.recompute, selected, answer.text, answer.report.charged)

    def _placed(self, row: Method) -> Method:
        return replace(row, layout=self.row.layout)

    def _chunks(self, row: Method) -> Sequence[Chunk]:
        """Looking must not fill the index with an encoding that was never asked for: uncached chunks are not stored."""
        index = self.engine.index
        made = row.encode is None or row.encode.recipe in index.catalog.stats()["encodings"]
        return self.chunks if made else [index.uncached_chunk(chunk.text) for chunk in self.chunks]


def _passed(ready: Prefilled) -> PrefillContext:
    assert ready.context is not None  # rows that reuse nothing were refused
    return ready.context


def _attention(buffer: KVBuffer, p: PrefillContext) -> Tensor:
    """The question's rows once more over a prefilled buffer: (layers, question tokens, context slots)."""
    maps: list[list[Tensor]] = [[] for _ in range(p.reader.layers)]
    sinks: dict[int, ScoreSink] = {layer: _Mean(found) for layer, found in enumerate(maps)}
    rows = p.question
    plan = ForwardPlan.on(p.reader.device, rows, int(rows[-1]) + 1, scores=sinks)
    p.reader.forward(p.token_ids[rows].tolist(), Positions(p.positions[plan.slots]), buffer, plan)
    return torch.stack([torch.cat(found) for found in maps])[:, :, : p.context_end].cpu()


@dataclass(frozen=True)
class _Mean:
    """Keeps the mean over heads of a layer's attention, block of rows by block of rows."""

    found: list[Tensor]

    def __call__(self, probabilities: Tensor) -> None:
        self.found.append(probabilities.mean(0))  # (rows, keys)


def _deviation(layers: Sequence[Tensor], full: Sequence[Tensor], context: int) -> Deviation:
    """Of each layer's K and V, as `ChunkKV` has them, over the context's slots; of latents both are the same."""
    pairs = zip(layers, full, strict=True)
    both = torch.stack([moved(ours[:, :, :context], true[:, :, :context]).cpu() for ours, true in pairs])
    return Deviation(both[:, 0], both[:, -1])  # from (layers, 2, slots)


def texts(reader: Reader, prompt: Prompt) -> tuple[str, ...]:
    """The text of each token; a character that several tokens share stands with the last of them."""
    found: list[str] = []
    for segment in prompt.segments:
        shown = ""
        for count in range(1, len(segment) + 1):
            text = reader.tokenizer.decode(segment.token_ids[:count], clean_up_tokenization_spaces=False)
            whole = text if count == len(segment) else text.rstrip("\ufffd")
            found.append(whole[len(shown) :])
            shown = whole if len(whole) > len(shown) else shown
    return tuple(found)


def by_layer(seen: Inspection) -> list[Mapping[str, float]]:
    """What each layer's figures come to.

    Returns
    -------
    list of mapping of str to float
        Per layer: `key_naive`, `value_naive`, `key_mended`, `value_mended`, deviation over full prefill's squared norm,
        both summed over the chunks' tokens; `heads`, the share of naive reuse's key deviation that lies in the first
        four tokens of the chunks; `covered`, the share that lies in the tokens the method recomputes; `attention`, the
        total variation between the question's attention to the context under full prefill and under the method, mean
        over its tokens, in [0, 1].
    """
    slots = torch.tensor([slot for chunk in seen.chunks for slot in chunk], dtype=torch.long)
    heads = torch.tensor([slot for chunk in seen.chunks for slot in chunk[:4]], dtype=torch.long)
    chosen = slots[seen.choices[0].selected[slots]]
    turned = 0.5 * (seen.attention_full - seen.attention_reused).abs().sum(-1).mean(-1)  # (layers,)
    named = {
        "key_naive": _share(seen.naive.key, seen.full.key, slots, slots),
        "value_naive": _share(seen.naive.value, seen.full.value, slots, slots),
        "key_mended": _share(seen.recomputed_kv.key, seen.full.key, slots, slots),
        "value_mended": _share(seen.recomputed_kv.value, seen.full.value, slots, slots),
        "heads": _share(seen.naive.key, seen.naive.key, heads, slots),
        "covered": _share(seen.naive.key, seen.naive.key, chosen, slots),
        "attention": turned,
    }
    return [{name: float(values[layer]) for name, values in named.items()} for layer in range(len(turned))]


def _share(part: Tensor, whole: Tensor, ours: Tensor, slots: Tensor) -> Tensor:
    """(layers,): what `part` comes to over some slots, over what `whole` comes to over all; 0 of nothing."""
    total = whole[:, slots].sum(-1)
    return torch.where(total > 0, part[:, ours].sum(-1) / total, torch.zeros(()))
