import pytest
import torch
from ragcache_bench.contenders import EXTRA, Contender, contenders
from ragcache_bench.references import EVIDENCE, TRUE_DEVIATION, TrueDeviation
from ragcache_bench.tasks import Example

from ragcache.engine.answer import Answer
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import Everything

TEXTS = ("This page is about Tide.", "It is based in Oslo.", "The cafeteria opens at nine.")
ASKED = Example("t-0", "t", TEXTS, "Where is Tide based?", ("Oslo",), (1,))


@pytest.fixture
def filled(index: Index) -> Index:
    for text in TEXTS:
        index.put(text, "", [(text, 0, len(text))], {})
    list(index.encode(EVIDENCE.encode))  # type: ignore[arg-type]
    return index


def stored(index: Index, who: Contender) -> Answer:
    ids = [index.catalog.chunks_of(index.catalog.document_by_source(text).id)[0].id for text in TEXTS]  # type: ignore[union-attr]
    chunks = index.chunks(ids)
    return Engine(index.reader, index).answer(ASKED.question, chunks, method=who.row(ASKED), recompute=who.recompute)


def test_evidence_recomputes_the_gold_chunks_and_nothing_else(filled: Index) -> None:
    report = stored(filled, Contender(EVIDENCE)).report
    assert [chunk.recomputed for chunk in report.chunks] == [0, report.chunks[1].tokens, 0]
    assert report.charged == pytest.approx(report.chunks[1].tokens / sum(chunk.tokens for chunk in report.chunks))


def test_evidence_that_nobody_told_recomputes_nothing(filled: Index) -> None:
    question = Example("t-1", "t", TEXTS, ASKED.question, ("Oslo",), ())
    assert Contender(EVIDENCE).row(question).select.texts == frozenset()  # type: ignore[union-attr]
    assert Contender(EVIDENCE).row(ASKED).select.texts == {TEXTS[1]}  # type: ignore[union-attr]


def test_methods_are_told_nothing() -> None:
    for who in contenders(["cacheblend", "epic"], (0.15,), controls=("full", "random", "heads", "true-deviation")):
        assert who.row(ASKED) is who.method


def test_true_deviation_charges_its_budget_and_not_its_oracle(filled: Index) -> None:
    report = stored(filled, Contender(TRUE_DEVIATION, 0.3)).report
    assert report.charged == pytest.approx(0.3, abs=0.02)
    assert stored(filled, Contender(TRUE_DEVIATION, 0.0)).report.charged == 0.0


def test_true_deviation_is_what_recomputing_everything_changes(filled: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores against a second derivation: the buffer before and after every token is recomputed in place."""
    seen: dict[str, torch.Tensor] = {}

    def scores(self: Everything, p: PrefillContext) -> torch.Tensor:
        end = p.context_end
        seen["scores"] = TrueDeviation().scores(p)[:end]
        seen["last"] = TrueDeviation(layer=-1).scores(p)[:end]
        before = torch.stack(p.buffer.read(0, end))  # (layers, 2, kv_heads, slots, head_dim)
        p.forward(torch.arange(end))  # type: ignore[arg-type]
        after = torch.stack(p.buffer.read(0, end))
        moved = (after - before).square().sum((2, 4))  # (layers, 2, slots)
        by_layer = (moved / after.square().sum((2, 4)).mean(-1, keepdim=True)).sum(1)  # (layers, slots)
        seen["wanted"], seen["wanted last"] = by_layer.mean(0), by_layer[-1]
        return torch.full((len(p.prompt),), float("inf"))

    monkeypatch.setattr(Everything, "scores", scores)
    row = Contender(Method("all", EVIDENCE.encode, Everything(), 0.5), 0.5)
    stored(filled, row)
    torch.testing.assert_close(seen["scores"], seen["wanted"], rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(seen["last"], seen["wanted last"], rtol=1e-3, atol=1e-5)
    assert float(seen["scores"].max()) > 0.01


def test_heads_stay_below_three_percent_and_take_first_tokens(filled: Index) -> None:
    long = " ".join(f"word{i}" for i in range(30))
    for n in range(3):
        filled.put(f"long-{n}", "", [(f"{n} {long}", 0, 1)], {})
    list(filled.encode(EVIDENCE.encode))  # type: ignore[arg-type]
    ids = [filled.catalog.chunks_of(filled.catalog.document_by_source(f"long-{n}").id)[0].id for n in range(3)]  # type: ignore[union-attr]
    report = Engine(filled.reader, filled).answer("Why?", filled.chunks(ids), method=EXTRA["heads"]).report
    assert 0 < report.charged <= 0.03
    recomputed = [chunk.recomputed for chunk in report.chunks]
    assert max(recomputed) - min(recomputed) <= 1
