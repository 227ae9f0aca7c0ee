"""Where chunks stand: shared positions, and the best next to the question."""

from pathlib import Path
from typing import Any

import pytest
import torch
from dense import dense
from hypothesis import given
from hypothesis import strategies as st
from stages import Stage, stage
from torch import Tensor

from ragcache.attend import TopChunks
from ragcache.encode import Alone, Fused, Prefixed
from ragcache.errors import InvalidArgument
from ragcache.layout import BestLast, Overlapped
from ragcache.layout.overlapped import overlapped
from ragcache.method import Method
from ragcache.prompt import Prompt, Segment
from ragcache.select import QuestionAttention, RandomTokens, ValueShift


@pytest.fixture
def set_up(tmp_path: Path) -> Stage:
    return stage(tmp_path, "naive", "fusionrag")


def test_chunks_with_text_between_them_overlap_only_those_next_to_them() -> None:
    sizes = (3, 4, 2, 1, 5, 2)
    names = (None, "a", "b", None, "c", None)
    segments = tuple(Segment(tuple(range(n)), "", name) for n, name in zip(sizes, names, strict=True))
    assert overlapped(Prompt(segments, question=5)).positions == (0, 3, 3, 7, 8, 13)


@given(st.lists(st.integers(1, 9), max_size=5), st.integers(0, 5), st.integers(1, 5))
def test_overlapped_chunks_begin_together_and_the_question_behind_the_longest(
    sizes: list[int], prefix: int, question: int
) -> None:
    chunks = [Segment(tuple(range(size)), "", f"c{i}") for i, size in enumerate(sizes)]
    segments = (Segment(tuple(range(prefix))), *chunks, Segment(tuple(range(question))), Segment((1, 2)))
    prompt = overlapped(Prompt(segments, question=len(segments) - 2))
    assert prompt.starts[0] == 0
    assert set(prompt.starts[1 : 1 + len(chunks)]) <= {prefix}
    assert prompt.starts[-2] == prefix + max(sizes, default=0)
    assert prompt.starts[-1] == prompt.starts[-2] + question


def test_overlapped_chunks_are_read_where_they_were_made(set_up: Stage) -> None:
    ours = set_up.prefill(Method("own", Prefixed(), layout=Overlapped()))
    prompt, fresh = ours.prompt, set_up.fresh(ours.prompt)
    prefix = prompt.segments[0].token_ids
    expected = dense(set_up.reader, prompt, set_up.kv(prompt, prefix), lambda layer: fresh)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    assert len({prompt.starts[segment] for segment in prompt.chunks()}) == 1


def test_all_recomputed_is_full_prefill_at_the_shared_positions(set_up: Stage) -> None:
    ours = set_up.prefill(Method("own", Alone(), RandomTokens(), 0.2, layout=Overlapped()), 1.0)
    everything = torch.arange(len(ours.prompt))
    expected = dense(set_up.reader, ours.prompt, set_up.kv(ours.prompt), lambda layer: everything)
    assert torch.allclose(ours.logits, expected, atol=1e-4)
    full, _ = set_up.reader.stock(ours.prompt.token_ids)
    assert not torch.allclose(ours.logits, full, atol=1e-2), "the positions should matter"


def test_the_best_chunk_stands_last(set_up: Stage) -> None:
    layout = BestLast(QuestionAttention(layers=(3, 4), reduce="norm"), share=0.2)
    ours = set_up.prefill(Method("own", Alone(), layout=layout))
    look = overlapped(set_up.prefill(Method("own", Alone())).prompt)
    question = look.slots[look.question + 1] - look.slots[look.question]
    scores: list[Tensor] = []

    def attend(layer: int, logits: Tensor, values: Tensor) -> Tensor:
        weights = logits.softmax(-1)
        if layer in (3, 4):
            scores.append(weights[:, :question].mean(0).pow(2).sum(0).sqrt())
        return weights @ values

    fresh = set_up.fresh(look)
    dense(set_up.reader, look, set_up.kv(look), lambda layer: fresh, attend)
    context = set_up.selectable(look)
    ranked = context[torch.stack(scores).mean(0)[context].argsort(descending=True)]
    best = set(ranked[: round(0.2 * len(context))].tolist())
    density = {s: sum(slot in best for slot in range(look.slots[s], look.slots[s + 1])) / len(look.segments[s])
               for s in look.chunks()}  # fmt: skip
    expected = [look.segments[s].chunk for s in sorted(density, key=density.__getitem__)]
    assert len(set(density.values())) > 2, "the order should be decided by more than ties"
    assert [ours.prompt.segments[s].chunk for s in ours.prompt.chunks()] == expected
    assert [chunk.id for chunk in ours.report.chunks] == expected


def test_looking_is_paid_for_and_charged_to_nobody_twice(set_up: Stage) -> None:
    plain, best = (set_up.prefill(Method("own", Alone(), layout=layout)) for layout in (Overlapped(), BestLast()))
    assert best.report.charged_flops > plain.report.charged_flops
    assert best.report.charged == 0


def test_what_the_look_had_to_make_is_reported_as_missing(set_up: Stage) -> None:
    index = set_up.engine.index
    [row] = index.catalog.encodings(set_up.chunks[1].id, "alone")
    index.catalog.drop_key(row.key)
    index.store.delete(row.key)
    index._memory.discard(row.key)
    report = set_up.prefill(Method("own", Alone(), layout=BestLast())).report
    states = {chunk.id: chunk.cache for chunk in report.chunks}
    assert [states[chunk.id] for chunk in set_up.chunks] == ["hit", "miss", "hit", "hit"]
    assert report.charged > 0


@pytest.mark.parametrize("part", [{"layout": BestLast(by=ValueShift())}, {"attend": TopChunks(by=ValueShift())}])
def test_what_a_layout_or_a_shaping_reads_must_be_stored(part: dict[str, Any]) -> None:
    assert Method("mine", Fused(), **part).needs == ("value_shift",)
    with pytest.raises(InvalidArgument, match="value_shift"):
        Method("mine", Alone(), **part)
