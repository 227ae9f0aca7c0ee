"""The bundled reader in the engine: exact at r = 1, able to read, and an honest answer key."""

from collections.abc import Sequence

import pytest
import torch
from ragcache_bench.metrics import exact_match
from ragcache_bench.tasks import TASKS, Example

from ragcache import Engine, Index, Reader, Sampling
from ragcache.bundled import corpus_path, questions, reader_path

SHORT = Sampling(max_new_tokens=24)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    reader = Reader.load(str(reader_path()), dtype="float32", device="cpu")
    return Engine(reader, Index(tmp_path_factory.mktemp("bundled") / "index", reader))


def right(engine: Engine, examples: Sequence[Example], method: str, recompute: float | None = None) -> list[float]:
    answers = (
        engine.answer(e.question, e.chunks, method=method, recompute=recompute, sampling=SHORT) for e in examples
    )
    return [exact_match(answer.text, e.answers) for answer, e in zip(answers, examples, strict=True)]


def test_recomputing_everything_is_full_prefill(engine: Engine) -> None:
    for example in TASKS["corpus-section"].examples(5, seed=3):
        full = engine.prefill(example.question, _loose(engine, example), method="full")
        ours = engine.prefill(example.question, _loose(engine, example), method="random", recompute=1.0)
        assert (ours.logits - full.logits).abs().max() <= 1e-4
        assert torch.equal(ours.logits.argmax(), full.logits.argmax())
    for example in TASKS["corpus-two-hop"].examples(5, seed=3):
        full_text = engine.answer(example.question, example.chunks, method="full", sampling=SHORT).text
        ours_text = engine.answer(example.question, example.chunks, method="epic", recompute=1.0, sampling=SHORT).text
        assert ours_text == full_text


def test_it_reads_single_facts(engine: Engine) -> None:
    hits = right(engine, TASKS["corpus-one-hop"].examples(24, seed=5), "full")
    assert sum(hits) / len(hits) >= 0.8


def test_the_answer_key_needs_chunk_to_chunk_attention(engine: Engine) -> None:
    examples = TASKS["sections"].examples(16, seed=5)
    full, naive = right(engine, examples, "full"), right(engine, examples, "naive")
    assert sum(full) - sum(naive) >= 0.3 * len(examples)


def test_every_question_is_answerable_from_its_documents() -> None:
    asked = questions()
    kinds = [question.kind for question in asked]
    assert len(asked) >= 300
    assert kinds.count("section") >= 60
    assert sum(question.unseen_phrasing for question in asked) >= 0.2 * len(asked)
    for question in asked:
        texts = [(corpus_path() / source).read_text() for source in question.sources]
        assert all(any(sentence in text for text in texts) for sentence in question.evidence), question.id
        assert any(question.answer in sentence for sentence in question.evidence), question.id
    assert len([path for path in corpus_path().rglob("*") if path.is_file()]) >= 120


def _loose(engine: Engine, example: Example) -> list:  # type: ignore[type-arg]
    return [engine.index.uncached_chunk(text) for text in example.chunks]
