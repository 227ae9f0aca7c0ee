"""Any order, any hole, any duplicate: the engine equals the reference twin, logit for logit."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stages import Spaced
from torch import Tensor
from twin import twin_logits

from ragcache.encode import Alone, Prefixed, PromptEncoder
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.layout import Overlapped
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.select import Selector

TEXTS = ("alpha one", "beta two two", "gamma", "delta four four four")
QUESTION = "which?"


@dataclass(frozen=True)
class Marked(Selector):
    """Recomputes the slots whose token id is a multiple of `every`: a set that the twin can name too."""

    every: int

    def scores(self, p: PrefillContext) -> Tensor:
        chosen = p.token_ids % self.every == 0
        return torch.where(chosen, float("inf"), float("-inf"))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[Chunk], list[Chunk]]]:
    """An engine, chunks whose KV is stored, and the same texts never ingested."""
    from conftest import tiny_reader

    reader = tiny_reader("qwen3")
    with Index(tmp_path_factory.mktemp("twin") / "index", reader) as index:
        for n, text in enumerate(TEXTS):
            index.put(f"doc{n}", text, [(text, 0, len(text))], {})
        for encoder in (Alone(), Prefixed()):
            list(index.encode(encoder))
        known = sorted(index.chunks([row.id for row in index.catalog.all_chunks()]), key=lambda chunk: chunk.source)
        yield Engine(reader, index), known, [index.uncached_chunk(text) for text in TEXTS]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    order=st.lists(st.integers(0, len(TEXTS) - 1), min_size=0, max_size=6),
    missing=st.sets(st.integers(0, len(TEXTS) - 1)),
    every=st.sampled_from([1, 2, 3, 1000]),
    prefixed=st.booleans(),
    between=st.sampled_from(["", " -- "]),
)
def test_any_prompt_equals_the_twin(
    stage: tuple[Engine, list[Chunk], list[Chunk]],
    order: list[int],
    missing: set[int],
    every: int,
    prefixed: bool,
    between: str,
) -> None:
    engine, known, loose = stage
    chunks = [loose[i] if i in missing else known[i] for i in order]
    row = Method("test", Prefixed() if prefixed else Alone(), Marked(every), 0.0)
    row = replace(row, layout=Spaced(between)) if between else row
    ready = engine.prefill(QUESTION, chunks, method=row, recompute=1e-9)
    prompt = ready.prompt
    prefix = prompt.segments[0].token_ids
    lefts = {0: (), **dict.fromkeys(prompt.chunks(), prefix if prefixed else ())}
    exact = {segment for segment, c in zip(prompt.chunks(), ready.report.chunks, strict=True) if c.cache == "exact"}
    recomputed = torch.zeros(len(prompt), dtype=torch.bool)
    for segment in set(prompt.chunks()) - exact:
        span = slice(prompt.slots[segment], prompt.slots[segment + 1])
        recomputed[span] = torch.tensor(prompt.token_ids[span]) % every == 0
    expected = twin_logits(engine.reader, prompt, lefts, recomputed)
    torch.testing.assert_close(ready.logits, expected, atol=1e-4, rtol=1e-4)
    assert int(recomputed.sum()) == ready.report.tokens.recomputed
    states = [c.cache for c in ready.report.chunks]
    first = [i not in order[:place] for place, i in enumerate(order)]  # a text that is missing is made once
    assert [state == "miss" for state in states] == [i in missing and new for i, new in zip(order, first, strict=True)]
    may_be_exact = prefixed and bool(order) and order[0] not in missing
    assert exact == ({1} if may_be_exact else set())


def test_all_orders_of_three_chunks_differ_and_none_touches_the_stored_kv(
    stage: tuple[Engine, list[Chunk], list[Chunk]],
) -> None:
    engine, known, _ = stage
    seen = []
    for order in itertools.permutations(range(3)):
        chunks = [known[i] for i in order]
        first = engine.prefill(QUESTION, chunks, method="naive").logits
        again = engine.prefill(QUESTION, chunks, method="cacheblend", recompute=0.5)
        assert torch.equal(first, engine.prefill(QUESTION, chunks, method="naive").logits)
        assert again.report.cached == 3
        seen.append(first)
    assert all((a - b).abs().max() > 1e-4 for a, b in itertools.combinations(seen, 2))


def test_quality_does_not_fall_as_recompute_grows(stage: tuple[Engine, list[Chunk], list[Chunk]]) -> None:
    """On a random model the distance to full prefill is what can fall; 0.99 must be near 1, and 1 must be exact."""
    engine, known, _ = stage
    dial = (row for row in METHODS.values() if row.recompute is not None)
    for name in (row.name for row in dial if row.layout != Overlapped()):  # whose positions are not stock ones
        if isinstance(METHODS[name].encode, PromptEncoder):
            engine.answer(QUESTION, known[::-1], method=name)
        answers = [engine.prefill(QUESTION, known, method=name, recompute=r) for r in (0.0, 0.5, 0.99, 1.0)]
        full, _ = engine.reader.stock(answers[0].prompt.token_ids)  # in the row's own order
        assert len({answer.prompt.token_ids for answer in answers}) == 1, name
        distance = [float((answer.logits - full).norm()) for answer in answers]
        assert distance[3] < 1e-3
        assert distance[2] < distance[0], name


def test_recompute_charges_what_it_computes(stage: tuple[Engine, list[Chunk], list[Chunk]]) -> None:
    engine, known, _ = stage
    layers = engine.reader.layers
    report = engine.prefill(QUESTION, known, method="cacheblend", recompute=0.25).report
    selectable = sum(chunk.tokens for chunk in report.chunks)
    assert report.tokens.recomputed == round(0.25 * selectable)
    behind = (layers - 2) / layers  # layers 0 and 1 are fresh for every token, those that are recomputed among them
    assert report.charged == pytest.approx(2 / layers + behind * report.tokens.recomputed / selectable)
    plain = engine.prefill(QUESTION, known, method="epic", recompute=0.25).report
    assert plain.charged == pytest.approx(report.tokens.recomputed / selectable)
    assert plain.charged_flops < report.charged_flops < 1
    assert engine.prefill(QUESTION, known, method="full").report.charged_flops == pytest.approx(1.0)


def test_a_different_reader_refuses_the_index(stage: tuple[Engine, list[Chunk], list[Chunk]], reader: Reader) -> None:
    from ragcache.errors import IndexMismatch

    with pytest.raises(IndexMismatch, match=r"tiny-qwen3.*tiny-llama"):
        Index(stage[0].index.path, reader)
