"""Chunks found by meaning, by words, and by a second look."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer

from ragcache import RagCache
from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.retrieve import Retriever, Titles

PAGES = {
    "ferry.txt": "The ferry leaves the harbour at nine.",
    "mill.txt": "The mill by the river grinds oats.",
    "pump.txt": "Pump QX-417 stands in the cellar.",
}


class Blind:
    """Finds texts by their length only."""

    name, max_tokens = "blind", 400

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]


class Longest:
    """Takes the longest text for the best."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.seen += texts
        return [float(len(text)) for text in texts]


@pytest.fixture
def index(tmp_path: Path, checkpoint: Path) -> Path:
    (tmp_path / "pages").mkdir()
    for name, text in PAGES.items():
        (tmp_path / "pages" / name).write_text(text, encoding="utf-8")
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive", embedder=Blind()) as rag:
        rag.ingest(tmp_path / "pages", titles="none")
    return tmp_path / "index"


def found(index: Path, question: str, count: int, **how: Any) -> list[str]:
    with RagCache.open(index, embedder=Blind(), **how) as rag:
        return [chunk.text for chunk in rag.retrieve(question, top_k=count)]


def test_words_find_what_vectors_miss(index: Path) -> None:
    question = "QX-417" + " nobody knows" * 9
    assert found(index, question, 1, retriever="dense") != [PAGES["pump.txt"]]
    assert found(index, question, 1) == [PAGES["pump.txt"]], "by default words count too"


def test_chunks_that_no_word_names_are_found_by_their_vectors(index: Path) -> None:
    assert sorted(found(index, "¿?", 3, retriever="hybrid")) == sorted(PAGES.values())


def test_a_program_s_reranker_has_the_last_word(index: Path) -> None:
    judge = Longest()
    assert found(index, "When?", 1, reranker=judge) == [max(PAGES.values(), key=len)]
    assert sorted(judge.seen) == sorted(PAGES.values())


def test_a_cross_encoder_puts_chunks_in_its_order(index: Path, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=1
    )
    BertForSequenceClassification(config).save_pretrained(tmp_path / "judge")
    tokenizer = byte_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(tmp_path / "judge")
    pairs = [("When?", text) for text in PAGES.values()]
    scores = CrossEncoder(str(tmp_path / "judge")).predict(pairs)
    best_first = [text for _, text in sorted(zip(scores, PAGES.values(), strict=True), reverse=True)]
    assert found(index, "When?", 3, reranker=str(tmp_path / "judge")) == best_first


def test_what_is_no_reranker_is_refused(index: Path) -> None:
    class Short:
        def score(self, question: str, texts: Sequence[str]) -> list[float]:
            return [1.0]

    with pytest.raises(InvalidArgument, match="Short gave 1 scores for 3 chunks"):
        found(index, "When?", 1, reranker=Short())
    with pytest.raises(InvalidArgument, match="int is no reranker"):
        found(index, "When?", 1, reranker=3)
    with pytest.raises(InvalidArgument, match="retriever is 'sparse'; choose one of dense, hybrid, iterative"):
        found(index, "When?", 1, retriever="sparse")


def test_answers_come_from_what_was_found(index: Path) -> None:
    with RagCache.open(index, embedder=Blind(), retriever="hybrid") as rag:
        [source] = rag.ask("Where is QX-417?", top_k=1, sampling=Sampling(max_new_tokens=2)).sources
    assert source.text == PAGES["pump.txt"]


def test_words_find_nothing_that_has_no_vector_yet(index: Path) -> None:
    with RagCache.open(index, embedder=Blind()) as rag:
        [gone] = [row.id for row in rag.index.catalog.all_chunks() if row.text == PAGES["pump.txt"]]
        rag._vectors.delete([gone])
        assert [chunk.text for chunk in rag._search.find("QX-417", 3, "hybrid")] != []
        assert gone not in [chunk.id for chunk in rag._search.find("QX-417", 3, "hybrid")]


def test_what_words_found_has_its_similarity_too(index: Path) -> None:
    with RagCache.open(index, embedder=Blind()) as rag:
        dense = {chunk.id: chunk.score for chunk in rag._search.find("QX-417", 3, "dense")}
        hybrid = {chunk.id: chunk.score for chunk in rag._search.find("QX-417", 3, "hybrid")}
    assert hybrid == pytest.approx(dense, abs=1e-5)


MAKERS = {
    "a.txt": "The Pelpra pump is made by Norko Systems. It is green.",
    "b.txt": "Norko Systems can be reached under 6169. Its office is in Kelmar.",
    "c.txt": "The phone number of the harbour has seven digits.",
    "d.txt": "The phone number of the town hall is written at the door.",
}


def test_an_iterative_search_goes_on_from_the_best_sentences_that_it_found(tmp_path: Path, checkpoint: Path) -> None:
    for name, text in MAKERS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    question = "What is the phone number of the company that makes the Pelpra pump?"
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive", retriever="iterative") as rag:
        rag.ingest(sorted(tmp_path.glob("*.txt")), titles="none")
        first = [chunk.text for chunk in rag._search.find(question, 3, "hybrid")]
        again = [chunk.text for chunk in rag.retrieve(question, top_k=3)]
        assert MAKERS["b.txt"] not in first
        assert again == [MAKERS["a.txt"], MAKERS["c.txt"], MAKERS["b.txt"]]
        assert [len({chunk.id for chunk in rag.retrieve(question, top_k=top_k)}) for top_k in (1, 2, 4)] == [1, 2, 4]


class Exact:
    """Finds one text, and what says the same; then what is old."""

    name, max_tokens = "exact", 400

    def __init__(self, *same: str) -> None:
        self.same = {text.casefold() for text in same}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        old = [[0.6, 0.8] if "old" in text else [0.0, 1.0] for text in texts]
        return [[1.0, 0.0] if text.casefold() in self.same else rest for text, rest in zip(texts, old, strict=True)]


@pytest.mark.parametrize("titles", ["none", "both"])
def test_an_iterative_search_also_ranks_chunks_by_their_best_sentence(
    tmp_path: Path, checkpoint: Path, titles: Titles
) -> None:
    """What a chunk says beside much else, its vector may tell little of; so may a sentence without its title."""
    question, sentence = "When may one come?", "It opens at noon."
    embedder = Exact(question, sentence if titles == "none" else f"Harbour\n{sentence}")
    texts = {f"{name}.txt": f"The {name} is old." for name in ("barn", "forge", "mill", "quarry", "tower")}
    for name, text in {**texts, "harbour.txt": f"The quay is wide. {sentence}"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with RagCache.open(tmp_path / "index", model=str(checkpoint), method="naive", embedder=embedder) as rag:
        rag.ingest(sorted(tmp_path.glob("*.txt")), titles=titles)
        first, again = (rag._search.find(question, 6, retriever) for retriever in ("hybrid", "iterative"))
    assert [sentence in chunk.text for chunk in first].index(True) == 5
    assert [sentence in chunk.text for chunk in again].index(True) == 2


def test_a_search_of_some_documents_finds_a_text_that_others_have_too(tmp_path: Path, reader: Reader) -> None:
    for name in ("first.txt", "second.txt"):
        (tmp_path / name).write_text("The Tide project is led by Mara Voss. It is based in Kelmar.")
    (tmp_path / "other.txt").write_text("The Otter ferry crosses the sound every hour.")
    with RagCache.open(tmp_path / "index", model=reader) as rag:
        rag.ingest([tmp_path / name for name in ("first.txt", "second.txt", "other.txt")])
        for source in (str(tmp_path / "first.txt"), str(tmp_path / "second.txt")):
            assert [chunk.source for chunk in rag.retrieve("Who leads it?", sources=[source])] == [source]
            for retriever in ("dense", "iterative"):
                assert [chunk.source for chunk in rag._search.find("Who leads it?", 3, retriever, [source])] == [source]
        assert rag.retrieve("Who leads it?", sources=[]) == []


@pytest.mark.parametrize("retriever", ["dense", "hybrid", "iterative"])
def test_a_search_of_some_documents_reads_no_others(
    index: Path, retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RagCache.open(index, embedder=Blind()) as rag:
        read, real = list[str](), rag.index.chunks
        monkeypatch.setattr(rag.index, "chunks", lambda ids: read.extend(ids) or real(ids))
        [source] = [one.source for one in rag.documents() if one.source.endswith("mill.txt")]
        [chunk] = rag._search.find("Where is pump QX-417?", 3, retriever, [source])
    assert chunk.text == PAGES["mill.txt"]
    assert set(read) == {chunk.id}
