"""The published files, where they are on this machine."""

import os
from pathlib import Path

import pytest
from ragcache_bench.datasets import Card, card, named

DATA = Path(os.environ.get("RAGCACHE_DATA", Path(__file__).parents[4] / "shared" / "data"))


def cards(spec: str, path: str, n: int = 500) -> dict[str, Card]:
    if not (DATA / path).exists():
        pytest.skip(f"{path} is not on this machine; set RAGCACHE_DATA")
    return {name: card(task.examples(n)) for name, task in named(f"{spec}:{DATA / path}").items()}


def test_xquad() -> None:
    found = cards("xquad", "xquad/xquad.en.json", 2000)["xquad"]
    assert (found.n, found.gold, found.chunks) == (1190, 1.0, 5.0)
    assert found.missing == ("xquad-5729e2316aef0514001550c5",)  # "7,000,000 square kilometres (2,70", cut short


def test_natural_questions_with_oracle_passages() -> None:
    found = cards("nq-open", "nq-open-oracle/nq-open-oracle.jsonl.gz")["nq-open"]
    assert (found.n, found.gold, found.answerable, found.chunks, found.repeated) == (500, 1.0, 1.0, 8.0, 0)


@pytest.mark.parametrize(("name", "count"), [("hotpotqa", 29), ("2wikimultihopqa", 20), ("musique", 20)])
def test_annotated_multi_hop_samples(name: str, count: int) -> None:
    of = "2wiki" if name.startswith("2wiki") else name
    found = cards(of, f"ircot/{name}.txt")[of]
    assert (found.n, found.gold, found.answerable) == (count, 0.0, 1.0)


def test_key_value_pairs() -> None:
    found = cards("kv-retrieval", "kv-retrieval/kv-retrieval-75_keys.jsonl.gz")["kv-retrieval"]
    assert (found.n, found.gold, found.answerable, found.chunks) == (500, 1.0, 1.0, 4.0)


def test_babi_stories() -> None:
    found = cards("babi", "babi-en-10k")
    assert list(found) == [f"babi-{n}" for n in (1, 2, 4, 6, 11, 12, 13, 15)]
    assert all((one.n, one.gold) == (500, 1.0) for one in found.values())
    assert found["babi-6"].closed == 1.0
    assert found["babi-15"].answerable == pytest.approx(0.65, abs=0.06)  # "wolf" is told of as "wolves"
    assert found["babi-1"].answerable == 1.0


@pytest.mark.parametrize(
    ("of", "path"),
    [
        ("longbench-v2-short", "longbench-v2/data.json"),
        ("qasper", "qasper/qasper-dev-v0.3.json"),
        ("locomo", "locomo/locomo10.json"),
        ("multihop-rag", "multihop-rag/MultiHopRAG.json"),
        ("helmet-rag", "helmet/kilt/nq-dev-multikilt_1000_k50_dep6.jsonl"),
        ("conteb", "conteb"),
        ("kvpress", "ruler"),
    ],
)
def test_sets_that_were_read_from_their_authors_words_only(of: str, path: str) -> None:
    for found in cards(of, path, 50).values():
        assert found.n == 50
        assert found.repeated == 0
        assert found.chunks > 1
        assert found.gold > 0.9 or of.startswith("longbench")
