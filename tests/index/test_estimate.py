"""An ingestion's estimate: the batches it draws up are those that are made, and its seconds are those that pass."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model
from encode.contexts import put

from ragcache import RagCache
from ragcache.encode import Activations, Alone, Encoder, Fused, InDocument, Prefixed, Sink
from ragcache.index.encoding_batches import capacity
from ragcache.index.estimate import Outline, Trial
from ragcache.index.index import Index
from ragcache.index.pricing import Sample
from ragcache.model.reader import Reader

ENCODERS: list[Encoder] = [
    Alone(), Prefixed(), Sink(), InDocument(60), InDocument(), InDocument(None), Activations(InDocument(60)),
    Fused(2, by="structure"), Fused(3, by="both"), Fused(3),
]  # fmt: skip
DOCUMENTS = [[f"{'so it is, ' * (1 + (7 * d + n) % 5)}as number {n}." for n in range(d)] for d in (9, 1, 30, 4)]
MANY = 60


def lengths(index: Index) -> list[list[int]]:
    own = [index.catalog.chunks_of(row.id) for row in index.catalog.documents()]
    return [[len(row) for row in rows] for rows in sorted(own, key=lambda rows: rows[0].document)]


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.recipe)
def test_the_batches_of_the_outline_are_those_that_are_made(
    encoder: Encoder, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcache.index.index.capacity", lambda _: 200)
    with Index(tmp_path, reader) as index:
        for n, texts in enumerate(DOCUMENTS):
            put(index, f"document {n}", texts)
        names = [row.id for row in index.catalog.all_chunks()]
        outline = Outline(lengths(index), len(index.prefix_segment), reader.limit - len(index.prefix_segment))
        made: list[list[tuple[int, list[int]]]] = []
        real = index.encode_batch

        def noted(recipe: Encoder, batch: Sequence[Any]) -> None:
            if recipe == encoder:
                made.append([(len(row), [len(kv) for kv in left.kvs]) for row, left in batch])
            real(recipe, batch)

        monkeypatch.setattr(index, "encode_batch", noted)

        def near(chunk: str, count: int) -> list[str]:
            at = names.index(chunk)
            return [*names, *names][at + 1 : at + 1 + count]

        if isinstance(encoder, Activations):
            list(index.encode(encoder.of))
        list(index.encode(encoder, neighbours=near))
        drawn = outline.batches(encoder, 200)
        assert made == [[(len(one), [len(kv) for kv in left.kvs]) for one, left in batch] for batch in drawn]


def test_a_trial_computes_every_time_what_a_batch_computes(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    real = Index.encode_batch

    def noted(self: Index, encoder: Encoder, batch: Sequence[Any]) -> None:
        before = len(set(self.store.list()))
        real(self, encoder, batch)
        computed.append(len(set(self.store.list())) - before)
        assert [(len(row), sum(map(len, left.kvs)), len(left.kvs)) for row, left in batch] == [(9, 21, 2), (5, 0, 0)]

    monkeypatch.setattr(Index, "encode_batch", noted)
    with Index(tmp_path, reader) as index:
        trial = Trial(index, list(range(5, 250)))
        batch = tuple(planned(*one) for one in ((9, 21, 2), (5, 0, 0)))
        assert all(trial.seconds(Alone(), batch) > 0 for _ in range(3))
    assert computed == [2, 2, 2], "nothing is found to be there already"


def planned(tokens: int, left: int, parts: int) -> Any:
    from ragcache.index.estimate import Planned

    return Planned(tokens, left, parts, 1.0)


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[RagCache]:
    tiny_model("llama").save_pretrained(tmp_path / "model")
    byte_tokenizer().save_pretrained(tmp_path / "model")
    with RagCache.open(tmp_path / "index", model=str(tmp_path / "model")) as rag:
        yield rag


@pytest.fixture
def clock(rag: RagCache, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that pass while the model computes, copies and embeds, and at no other time."""
    now = [0.0]
    forward, place, embed = rag.reader.forward, rag.reader.place_all, rag.embedder.embed

    def computing(ids: Any, positions: Any, buffer: Any, plan: Any) -> None:
        now[0] += 1.0 + 0.01 * len(ids) + 2e-5 * len(ids) * plan.end
        forward(ids, positions, buffer, plan)

    def copying(buffer: Any, placements: Any) -> None:
        placements = list(placements)
        now[0] += 1e-3 * sum(len(kv) for kv, _, _ in placements)
        place(buffer, placements)

    def embedding(texts: Sequence[str]) -> Any:
        now[0] += 0.3 * len(texts)
        return embed(texts)

    monkeypatch.setattr(rag.reader, "forward", computing)
    monkeypatch.setattr(rag.reader, "place_all", copying)
    monkeypatch.setattr(rag.embedder, "embed", embedding)
    for module in ("estimate", "pricing", "ingestion"):
        monkeypatch.setattr(f"ragcache.index.{module}.perf_counter", lambda: now[0])
    return now


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for n, count in enumerate((MANY, 1, 7)):
        words = [" ".join(f"It goes on to {n}-{m}-{step}." for step in range(1 + m % 4)) for m in range(count)]
        (folder / f"{n}.txt").write_text("\n\n".join(words))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "naive", "link0", "fusionrag"])
def test_the_estimate_is_the_time_that_passes(method: str, rag: RagCache, documents: Path, clock: list[float]) -> None:
    plan = rag.plan(documents, methods=[method], chunk_tokens=60)
    before = clock[0]
    rag.ingest(documents, methods=[method], chunk_tokens=60)
    assert plan.chunks > MANY
    assert plan.seconds == pytest.approx(clock[0] - before, rel=0.15)


def test_what_is_there_already_is_not_priced(rag: RagCache, documents: Path) -> None:
    whole = rag.plan(documents)
    rag.ingest(documents)
    nothing = rag.plan(documents)
    assert (nothing.documents, nothing.chunks, nothing.bytes, nothing.seconds < whole.seconds) == (0, 0, 0, True)
    (documents / "1.txt").write_text("Something else.")
    assert (rag.plan(documents).documents, rag.plan(documents).chunks) == (1, 1)
    other = rag.plan(documents, methods=["naive"])
    assert (other.documents, other.chunks) == (3, whole.chunks)
    assert rag.pending(methods=["naive"]).chunks == whole.chunks


def test_a_run_that_was_stopped_is_priced_by_what_it_left(rag: RagCache, documents: Path) -> None:
    def stop(stage: str, done: int, total: int) -> None:
        if stage.startswith("encode") and done == 8:
            raise KeyboardInterrupt

    whole = rag.plan(documents)
    with pytest.raises(KeyboardInterrupt):
        rag.ingest(documents, progress=stop)
    left = rag.plan(documents)
    assert left.chunks == len(rag.index.catalog.missing("in-document(window=2048)")) < whole.chunks
    assert left.bytes < whole.bytes


def test_a_sample_is_drawn_from_all_texts() -> None:
    sample = Sample()
    for n in range(1000):
        sample.add(str(n))
    assert len(set(sample.texts)) == 64
    assert 300 < sum(map(int, sample.texts)) / 64 < 700


def test_an_outline_of_nothing_has_no_batches(reader: Reader) -> None:
    assert list(Outline([], 3, 100).batches(InDocument(), capacity(reader.device))) == []
