"""What every row of the method table must do, whatever it chooses: rows x prompts x architectures.

A row needs no test of its own to be held to this: `test_rows` takes its rows from the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest
import torch
from conftest import HYBRID, tiny_reader
from torch import Tensor
from twin import _masks

from ragcache.encode import Encoder, PromptEncoder
from ragcache.engine.answer import Answer
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.schedule import BehindDocument
from ragcache.store import LocalStore

LAYERS = 4
ARCHITECTURES = {"llama": {}, "qwen3": {}, "gemma3": {"layer_types": HYBRID[:2] * (LAYERS // 2)}}
CASES = ("hits", "hole", "reordered", "duplicate")
PAGES = (("The harbour master is Mara.", "She came in 1931."), ("It is painted green.",), ("Nobody knows why it is.",))
LOOSE = "Rye is milled here, and oats too."  # as long as no other segment: test_charging counts by length
QUESTION = "Who is she?"
EXACT = 1e-4  # fp32
ANSWER = 2  # tokens: the second one is decoded


@dataclass(frozen=True)
class RowStage:
    """An engine over a few short chunks, each encoded for every row."""

    engine: Engine
    chunks: Sequence[Chunk]

    def prompt(self, case: str) -> list[Chunk]:
        """The chunks of a case: `hole` has text that was never ingested, and a chunk whose KV `set` deletes."""
        a, b, c, d = self.chunks
        loose = self.engine.index.uncached_chunk(LOOSE)
        return {"hits": [a, b, c, d], "hole": [a, loose, c, d], "reordered": [c, a, d, b], "duplicate": [a, b, a]}[case]

    def missing(self, case: str) -> list[int]:
        """Which chunks of the prompt have no KV."""
        return [1, 3] if case == "hole" else []

    def set(self, row: Method, case: str) -> list[Chunk]:
        """The prompt's chunks, once the last one's KV is gone in the case `hole`, and everything is there in others.

        What is kept from prompts comes from one of the same chunks in another order, or from one that begins alike.
        """
        index = self.engine.index
        if isinstance(row.encode, PromptEncoder):
            index.catalog.drop_recipe(row.encode.recipe)
            index.forgotten.delete()
            earlier = self.chunks[:3] if row.encode.exact_only else self.chunks[::-1]
            self.engine.answer(QUESTION, earlier, method=row, sampling=Sampling(max_new_tokens=1))
        for encoder in _chain(row.encode):
            if case != "hole":
                list(index.encode(encoder, neighbours=self.others))
                continue
            for kept in index.catalog.encodings(self.chunks[3].id, encoder.recipe):
                index.catalog.drop_key(kept.key)
                index.store.delete(kept.key)
        return self.prompt(case)

    def others(self, chunk: str, count: int) -> list[str]:
        """The first other chunks: stands in for similarity."""
        return list(islice((one.id for one in self.chunks if one.id != chunk), count))

    def prefill(self, row: Method, case: str, recompute: float | None = None) -> Prefilled:
        """The case's prompt up to the first token."""
        return self.engine.prefill(QUESTION, self.set(row, case), method=row, recompute=recompute)

    def answer(self, row: Method, case: str, recompute: float | None = None) -> Answer:
        """A few tokens."""
        sampling = Sampling(max_new_tokens=ANSWER)
        return self.engine.answer(QUESTION, self.set(row, case), method=row, recompute=recompute, sampling=sampling)


def stage(folder: Path, architecture: str) -> RowStage:
    """Documents of one and of two chunks; a row's encoding is made when it is first asked."""
    reader = tiny_reader(architecture, num_hidden_layers=LAYERS, **ARCHITECTURES[architecture])
    index = Index(folder, reader, store=LocalStore(folder / "kv", durable=False))
    for n, page in enumerate(PAGES):
        starts = [" ".join(page).index(text) for text in page]
        index.put(f"doc{n}", "", [(text, at, at + len(text)) for text, at in zip(page, starts, strict=True)], {})
    names = {row.text: row.id for row in index.catalog.all_chunks()}
    return RowStage(Engine(reader, index), index.chunks([names[text] for page in PAGES for text in page]))


def _chain(encoder: Encoder | None) -> list[Encoder]:
    """What an encoding builds on, and the encoding."""
    return [*_chain(encoder.base_encoding), encoder] if encoder is not None else []


def check(stage: RowStage, row: Method, case: str) -> None:
    """Hold a row to all of it on one prompt."""
    ready = stage.prefill(row, case)
    assert ready.logits.isfinite().all()
    check_report(stage, row, case, ready)
    if row.recompute is not None:
        check_dial(stage, row, case)
        return
    with pytest.raises(InvalidArgument, match=rf"{row.name}.*fixed cost"):
        stage.prefill(row, case, 0.5)
    answer = stage.answer(row, case)
    assert answer.report.method == row.name
    if row.encode is None or row.encode.exact_only:
        assert list(answer.token_ids) == check_full(stage, ready)


def check_report(stage: RowStage, row: Method, case: str, ready: Prefilled) -> None:
    """Every chunk is accounted for, in the prompt's order, and the counts add up."""
    report, prompt = ready.report, ready.prompt
    segments = [prompt.segments[i] for i in prompt.chunks()]
    asked = stage.prompt(case)
    assert sorted(chunk.id for chunk in report.chunks) == sorted(chunk.id for chunk in asked)
    assert [(chunk.id, chunk.tokens) for chunk in report.chunks] == [(s.chunk, len(s)) for s in segments]
    lost = {asked[i].id for i in stage.missing(case)}
    states = {chunk.id: chunk.cache for chunk in report.chunks}
    assert {chunk for chunk, state in states.items() if state == "miss"} >= lost
    if row.encode is None or not row.encode.exact_only:
        assert all((state == "miss") == (row.encode is None or chunk in lost) for chunk, state in states.items())
    assert all(chunk.reason for chunk in report.chunks)
    assert all(chunk.recomputed == 0 for chunk in report.chunks if chunk.cache == "exact")
    context = sum(map(len, segments))
    missed = sum(chunk.tokens for chunk in report.chunks if chunk.cache == "miss")
    again = sum(chunk.recomputed for chunk in report.chunks if chunk.cache != "miss")
    assert (report.tokens.context, report.tokens.question) == (context, len(prompt) - context)
    assert report.tokens.reused + again + missed == context
    assert report.tokens.recomputed == sum(chunk.recomputed for chunk in report.chunks) == int(ready.recomputed.sum())
    assert report.recompute == row.recompute
    assert (report.tokens.recomputed > 0) == (row.select is not None and bool(row.recompute))


def check_dial(stage: RowStage, row: Method, case: str) -> None:
    """r = 1 is full prefill at the row's own order and positions, answer included; 0.99 is near it, 0 is not."""
    whole = stage.prefill(row, case, 1.0)
    assert list(stage.answer(row, case, 1.0).token_ids) == check_full(stage, whole)
    none, near = (float((stage.prefill(row, case, r).logits - whole.logits).norm()) for r in (0.0, 0.99))
    assert none > 100 * EXACT, "nothing was reused, so nothing was tested"
    # A token that keeps its document beside the prompt does not come near full prefill: it does at 1 alone.
    assert near < none / 2 or isinstance(row.schedule, BehindDocument)


def check_full(stage: RowStage, ready: Prefilled) -> list[int]:
    """The prompt's logits are full prefill's; gives the answer that full prefill gives, without what ends it."""
    said: list[int] = []
    while len(said) < ANSWER:
        logits = stock(stage, ready.prompt, said)
        if not said:
            torch.testing.assert_close(ready.logits, logits, atol=EXACT, rtol=EXACT)
        token = int(logits.argmax())
        if token in stage.engine.reader.stop_ids:
            break
        said.append(token)
    return said


def positions(prompt: Prompt) -> list[int]:
    """RoPE position of every token."""
    return [
        start + i for start, segment in zip(prompt.starts, prompt.segments, strict=True) for i in range(len(segment))
    ]


@torch.no_grad()
def embedded(reader: Reader, token_ids: Sequence[int]) -> Tensor:
    """(tokens, width): the model's own embeddings, followed by those of link tokens."""
    own = reader.model.get_input_embeddings()
    links = reader.links.embeddings.flatten(0, 1) if reader.links else torch.empty(0, own.weight.shape[1])
    words = own(torch.tensor([token if token < len(own.weight) else 0 for token in token_ids]))
    pairs = zip(token_ids, words, strict=True)
    return torch.stack([row if token < len(own.weight) else links[token - len(own.weight)] for token, row in pairs])


@torch.no_grad()
def stock(stage: RowStage, prompt: Prompt, answered: Sequence[int] = ()) -> Tensor:
    """Logits behind a prompt and what was answered so far, (vocabulary,): one forward, no cache, masks by slot.

    The mask is explicit since transformers takes positions that jump for packed sequences.
    """
    reader, at = stage.engine.reader, positions(prompt)
    at += range(at[-1] + 1, at[-1] + 1 + len(answered))
    slots = torch.arange(len(at))
    output = reader.model(
        inputs_embeds=embedded(reader, [*prompt.token_ids, *answered])[None], position_ids=torch.tensor([at]),
        attention_mask=_masks(reader, slots, slots), use_cache=False,
    )  # fmt: skip
    logits: Tensor = output.logits[0, -1].float()
    return logits
