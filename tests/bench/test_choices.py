"""Findings e to l: claims put as pairs of methods, where a small model looks, and what is retrieved together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from ragcache_bench.contenders import Contender
from ragcache_bench.findings import at_choices, at_gaze, at_layers, at_neighbours, choices
from ragcache_bench.findings.choices import CLAIMS, Claim, Pair
from ragcache_bench.records import Journal, Record
from ragcache_bench.runs import Bench
from ragcache_bench.tasks import Example
from torch import Tensor

from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.select import Auxiliary
from ragcache.select.mass import layer_indices

TEXTS = ("This page is about Tide.", "It is based in Oslo.", "It is led by Mara Voss.", "Otter crosses the sound.")
EPIC, NAIVE, LINK0 = Contender(METHODS["epic"], 0.15), Contender(METHODS["naive"]), Contender(METHODS["link0"])


def examples(count: int) -> list[Example]:
    return [
        Example(f"sections-{i}", "sections", (f"Page {i}.", *TEXTS), f"Where is Tide {i}?", ("Oslo",), (0, 2))
        for i in range(count)
    ]


def answers(who: Contender, right: list[bool]) -> list[Record]:
    return [
        Record(
            key=f"{who.method.name}{i}", task="t" if i % 2 else "u", id=str(i), method=who.method.name,
            recompute=who.recompute, seed=0, answer="", em=float(em), f1=0.0, charged=0.1, charged_flops=0.1,
            ttft_ms=1.0, kl=0.0, gap=None,
        )
        for i, em in enumerate(right)
    ]  # fmt: skip


def test_every_pair_is_asked_on_every_question(reader: Reader, tmp_path: Path) -> None:
    bench = Bench(reader, Journal(tmp_path / "a.jsonl"), Sampling(max_new_tokens=2))
    found = at_choices(bench, "efghi", {"sections": examples(2)})
    assert [one.letter for one in found] == list("efghi")
    for one, claim in zip(found, CLAIMS, strict=True):
        assert [row["pair"] for row in one.rows if row["task"] == "all"] == [pair.words for pair in claim.pairs]
        assert {row["n"] for row in one.rows} == {2}
    assert at_choices(bench, "abcd", {"sections": examples(2)}) == []


@pytest.mark.parametrize(
    ("epic", "gains", "verdict"),
    [
        (40, (True, True), "confirmed"),
        (40, (True, False), "partly"),
        (20, (True, True), "not confirmed"),
        (20, (False, False), "confirmed"),
        (0, (True, False), "partly"),
    ],
)
def test_a_claim_stands_with_its_pairs(epic: int, gains: tuple[bool, bool], verdict: str) -> None:
    """Naive and link0 are right on the first 20 of 40."""
    records = [
        *answers(EPIC, [i < epic for i in range(40)]), *answers(NAIVE, [i < 20 for i in range(40)]),
        *answers(LINK0, [i < 20 for i in range(40)]),
    ]  # fmt: skip
    pairs = (Pair("one", EPIC, NAIVE, gains[0]), Pair("two", EPIC, LINK0, gains[1]))
    found = choices._decided(Claim("x", "Claims", "a paper", pairs), records, ["t", "u"])
    assert found.verdict == verdict
    assert [row["task"] for row in found.rows] == ["t", "u", "all"] * 2
    assert found.rows[2]["first"] == epic / 40
    assert (found.rows[2]["first charged"], found.rows[2]["second charged"]) == pytest.approx((0.1, 0.1))


def test_too_few_questions_do_not_show_that_nothing_is_gained() -> None:
    right = [True, False, True, False, False, False]
    claim = Claim("x", "Claims", "a paper", (Pair("one", EPIC, NAIVE, gain=False),))
    records = [*answers(EPIC, right), *answers(NAIVE, [False, True, True, False, False, False])]
    assert choices._decided(claim, records, ["t", "u"]).verdict == "not confirmed"


def test_a_small_model_is_compared_layer_by_layer(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, ...]] = []

    def looked(auxiliary: Auxiliary, p: PrefillContext) -> tuple[Tensor, Tensor]:
        (share,) = auxiliary.layers
        own = [layer_indices((share,), depth)[0] for depth in (4, p.reader.layers)]
        seen.append(tuple(own))
        one = torch.ones(40)
        return one, one + (4 - own[0]) * torch.arange(40)  # ever more alike

    monkeypatch.setattr("ragcache_bench.findings.question_attention.looks", looked)
    found = at_layers(Bench(reader, Journal(tmp_path / "k.jsonl")), {"sections": examples(2)})
    assert (found.letter, found.verdict, [row["n"] for row in found.rows]) == ("k", "confirmed", [2] * 4)
    assert seen[:4] == [(layer, (layer + 1) * reader.layers // 4 - 1) for layer in range(4)]


def test_neighbours_that_are_retrieved_together_are_counted(reader: Reader, tmp_path: Path) -> None:
    """Two kinds of chunks: a question of one kind finds that kind, and its neighbours are of it."""

    class Kinds:
        name, max_tokens = "kinds", 64

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            rows = np.array([[text.count("mill"), text.count("tide"), 0.01 * len(text)] for text in texts], np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def example(kind: str) -> Example:
        chunks = tuple(f"{kind} {'x' * n}" for n in range(1, 5))
        return Example(kind, "kinds", chunks, f"{kind}?", ("x",), ())

    bench = Bench(reader, Journal(tmp_path / "l.jsonl"), embedder=Kinds())  # type: ignore[arg-type]
    found = at_neighbours(bench, {"kinds": [example("mill"), example("tide")]})
    (row,) = found.rows
    assert (found.verdict, row["chunks"], row["2 neighbours"]) == ("confirmed", 8, "1.000 [1.000, 1.000]; 0.714")
    assert row["10 neighbours"].endswith("1.000"), "of seven others all are neighbours"


def test_where_a_small_model_looks(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(reader, Journal(tmp_path / "j.jsonl"))
    some, every = examples(2), [replace(one, gold=tuple(range(5))) for one in examples(2)]
    found = at_gaze(bench, {"sections": some})
    (row,), (all_gold,) = found.rows, at_gaze(bench, {"sections": every}).rows
    assert (found.letter, row["n"]) == ("j", 2)
    assert 0.2 < row["all tokens"] < 0.7  # two of five chunks
    assert {all_gold[who] for who in ("all tokens", "primary's", "auxiliary's choice in gold chunks")} == {1}
    monkeypatch.setattr("ragcache_bench.findings.question_attention.looks", lambda *_: pytest.fail("looked again"))
    assert at_gaze(bench, {"sections": examples(2)}).rows == found.rows
