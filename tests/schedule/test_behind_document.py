"""Recomputed tokens that keep their document: against one stock forward with one mask, and against plain recompute."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from encode.contexts import dense, opened
from stages import Spaced, stage

from ragcache.attend import Scaled
from ragcache.encode import Alone, InDocument, Prefixed
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.schedule import BehindDocument
from ragcache.select import RandomTokens, Selector

WHOLE = InDocument(window=None)
ROW = Method("own", WHOLE, RandomTokens(5), 0.3, schedule=BehindDocument())
QUESTION = "Where is it based?"

#: A token of the prompt, or one that only a segment's tokens see: (segment, hidden, of a prefix, id, position).
Token = tuple[int, bool, bool, int, int]


@dataclass(frozen=True)
class AllButOne(Selector):
    """Recomputes everything but the first token of the last chunk."""

    def scores(self, p: PrefillContext) -> torch.Tensor:
        scores = torch.full((len(p.prompt),), float("inf"))
        scores[p.span(p.prompt.chunks()[-1]).start] = float("-inf")
        return scores


def expected_kv(
    index: Index, prompt: Prompt, lefts: dict[int, list[tuple[int, ...]]], kept: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """K and V of the prompt, computed but for slot `kept`, each chunk behind its document as well: one stock forward.

    What is kept, a chunk's first token, saw its document and itself.
    """
    prefix = index.prefix_segment.token_ids
    tokens: list[Token] = [
        (number, False, False, token, prompt.slots[number] + i)
        for number, segment in enumerate(prompt.segments)
        for i, token in enumerate(segment.token_ids)
    ]
    for number, left in lefts.items():
        ids = [(True, token) for token in prefix] + [(False, token) for part in left for token in part]
        first = prompt.slots[number] - len(ids)
        tokens += [(number, True, of_prefix, token, first + i) for i, (of_prefix, token) in enumerate(ids)]
    sees = torch.tensor([[_sees(query, key) for key in tokens] for query in tokens])
    sees[kept] = torch.tensor([key[1] and key[0] == tokens[kept][0] for key in tokens])
    sees[kept, kept] = True
    positions = torch.tensor([token[4] for token in tokens])
    found = dense(index.reader, [token[3] for token in tokens], positions, sees)
    return [(key[:, : len(prompt)], value[:, : len(prompt)]) for key, value in found]


def _sees(query: Token, key: Token) -> bool:
    if query[1] == key[1]:
        return key[4] <= query[4] and (not query[1] or query[0] == key[0])
    return key[1] and not key[2] and query[0] == key[0]


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_what_is_recomputed_is_a_stock_forward_in_which_each_chunk_sees_its_document(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    index, tide, mill = opened(tmp_path, readers(architecture))
    list(index.encode(WHOLE))
    chunks = index.chunks([tide[2], mill[1], tide[1]])
    ours = Engine(index.reader, index).prefill(QUESTION, chunks, method=replace(ROW, select=AllButOne()))
    ids = {
        name: row.token_ids
        for names in (tide, mill)
        for name, row in zip(names, index.catalog.chunks(names), strict=True)
    }
    first, second, third = ours.prompt.chunks()
    lefts = {first: [ids[tide[0]], ids[tide[1]]], second: [ids[mill[0]]], third: [ids[tide[0]]]}
    wanted = expected_kv(index, ours.prompt, lefts, ours.prompt.slots[third])
    assert ours.context is not None
    for kv, (key, value) in zip(ours.context.buffer.read(0, len(ours.prompt)), wanted, strict=True):
        assert (kv[0] - key).abs().max() <= 1e-4
        assert (kv[1] - value).abs().max() <= 1e-4
    assert int(ours.recomputed.sum()) == sum(len(ours.prompt.segments[one]) for one in (first, second, third)) - 1


def test_chunks_with_nothing_before_them_are_recomputed_as_by_one_forward(tmp_path: Path) -> None:
    made = stage(tmp_path, "naive")
    flat = made.prefill(Method("flat", Alone(), RandomTokens(5), 0.3))
    ours = made.prefill(Method("own", Alone(), RandomTokens(5), 0.3, schedule=BehindDocument()))
    assert torch.equal(ours.recomputed, flat.recomputed)
    assert torch.allclose(ours.logits, flat.logits, atol=1e-4)
    assert ours.report.charged == pytest.approx(flat.report.charged)


def test_fresh_text_between_chunks_is_computed_once_and_in_its_place(
    tmp_path: Path, readers: Callable[[str], Reader]
) -> None:
    index, tide, mill = opened(tmp_path, readers("llama"))
    list(index.encode(Prefixed()))
    flat_row = Method("flat", Prefixed(), RandomTokens(5), 0.5, layout=Spaced(" and then "))
    flat, ours = (
        Engine(index.reader, index).prefill(QUESTION, index.chunks([*tide[1:3], *mill[1:]]), method=row)
        for row in (flat_row, replace(flat_row, schedule=BehindDocument()))
    )
    assert torch.allclose(ours.logits, flat.logits, atol=1e-4)
    assert ours.report.charged == pytest.approx(flat.report.charged)
    assert ours.report.charged_flops == pytest.approx(flat.report.charged_flops, rel=0.01)


def test_nothing_is_added_where_nothing_is_recomputed(tmp_path: Path, readers: Callable[[str], Reader]) -> None:
    index, tide, mill = opened(tmp_path, readers("llama"))
    list(index.encode(WHOLE))
    chunks, engine = index.chunks([tide[2], mill[1]]), Engine(index.reader, index)
    plain = engine.prefill(QUESTION, chunks, method=Method("plain", WHOLE))
    assert torch.equal(engine.prefill(QUESTION, chunks, method=ROW, recompute=0.0).logits, plain.logits)
    moved = engine.prefill(QUESTION, chunks, method=ROW).logits
    assert not torch.allclose(moved, plain.logits, atol=1e-4)


def test_shaped_attention_is_refused(tmp_path: Path, readers: Callable[[str], Reader]) -> None:
    index, tide, mill = opened(tmp_path, readers("llama"))
    list(index.encode(WHOLE))
    row = Method("own", WHOLE, RandomTokens(5), 0.3, schedule=BehindDocument(), attend=Scaled(0.9, 0.9))
    with pytest.raises(InvalidArgument, match="plain attention"):
        Engine(index.reader, index).prefill(QUESTION, index.chunks([tide[2], mill[1]]), method=row)
