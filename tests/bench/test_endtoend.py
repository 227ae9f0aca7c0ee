"""Retrieval and reading are scored apart."""

from pathlib import Path

import pytest
from conftest import tiny_reader
from ragcache_bench import endtoend
from ragcache_bench.contenders import contenders

from ragcache import RagCache
from ragcache.bundled import CorpusQuestion

PAGES = {"bridge.md": "The bridge is painted green.", "mill.md": "The mill grinds rye.", "inn.md": "It has beds."}


def question(name: str, text: str, *evidence: str) -> CorpusQuestion:
    return CorpusQuestion(name, text, "green", "one-hop", ("bridge.md",), name == "b", evidence)


def test_what_retrieval_missed_stands_beside_what_was_read_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    questions = [
        question("a", "What colour is the bridge painted?", "The bridge is painted green."),
        question("b", "What does the mill grind?", "The bridge is painted green."),
    ]
    steps: list[int] = []
    with RagCache.open(tmp_path / "index", model=tiny_reader()) as rag:
        rag.ingest(tmp_path, methods=["naive"])
        monkeypatch.setattr(endtoend, "exact_match", lambda text, accepted: float(accepted == ("green",)))
        rows = endtoend.run(
            rag, questions, contenders(["naive"], [], controls=()), top_k=1, progress=lambda *a: steps.append(a[1])
        )
    (row,) = rows
    assert (row.n, row.top_k, row.recall, row.score) == (2, 1, 0.5, 1.0)
    assert (row.score_found, row.score_unseen) == (1.0, 1.0)
    assert steps == [1, 2]
