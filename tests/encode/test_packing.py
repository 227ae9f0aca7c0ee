"""Chunks encoded together come out as if each were alone, and no batch is larger than it may be."""

from collections.abc import Callable, Sized
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from conftest import ARCHITECTURES, SIZES, byte_tokenizer, tiny_model
from hypothesis import given
from hypothesis import strategies as st
from staged import TEXTS, make

from ragcache.encode import Alone, Encoder, Fused, LeftContext, Prefixed, Sink
from ragcache.errors import UnsupportedModel
from ragcache.index.encoding_batches import batches, weight
from ragcache.index.index import Index
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader

#: Shorter and longer than a window of 48, and than a block of 256 rows.
LENGTHS = (7, 60, 1, 300, 33)


def todo(reader: Reader) -> list[tuple[list[int], list[ChunkKV]]]:
    """Chunks of several lengths behind nothing, one KV, or two."""
    tokens = [[5 + (n * 31 + i * i * 7) % 250 for i in range(length)] for n, length in enumerate(LENGTHS)]
    first, second = reader.encode(tokens[0]), reader.encode(tokens[1])
    lefts: list[list[ChunkKV]] = [[], [first], [second, first], [first], []]
    return list(zip(tokens, lefts, strict=True))


def assert_close(found: ChunkKV, expected: ChunkKV) -> None:
    assert (found.start, found.token_ids) == (expected.start, expected.token_ids)
    for ours, alone in zip(found.layers, expected.layers, strict=True):
        assert ours.shape == alone.shape
        assert (ours - alone).abs().max() <= 1e-5 * max(1, float(alone.abs().max()))


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_chunks_encoded_together_are_as_if_alone(architecture: str, readers: Callable[[str], Reader]) -> None:
    reader = readers(architecture)
    together = reader.encode_all(todo(reader))
    for kv, (ids, left) in zip(together, todo(reader), strict=True):
        assert_close(kv, reader.encode(ids, left))
    with pytest.raises(AssertionError):  # or the comparison proves nothing
        assert_close(reader.encode([*todo(reader)[0][0], *todo(reader)[1][0]]), together[0])


def test_routed_experts_do_not_see_the_batch() -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    sizes = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}
    reader = Reader(AutoModelForCausalLM.from_config(AutoConfig.for_model("mixtral", **sizes)), byte_tokenizer())
    for kv, (ids, left) in zip(reader.encode_all(todo(reader)), todo(reader), strict=True):
        assert_close(kv, reader.encode(ids, left))


def test_in_bf16_a_batch_stays_within_the_models_own_noise() -> None:
    narrow = Reader(tiny_model("llama", dtype=torch.bfloat16), byte_tokenizer())
    wide = Reader(tiny_model("llama", dtype=torch.bfloat16).float(), byte_tokenizer())
    for kv, (ids, left), (_, same) in zip(narrow.encode_all(todo(narrow)), todo(narrow), todo(wide), strict=True):
        alone, truth = narrow.encode(ids, left), wide.encode(ids, same)
        for ours, other, true in zip(kv.layers, alone.layers, truth.layers, strict=True):
            assert (ours.float() - true).norm() <= 1.5 * (other.float() - true).norm() + 1e-3 * true.norm()


@pytest.mark.parametrize("encoder", [Alone(), Prefixed(), Sink(), Fused(neighbours=2)], ids=lambda e: e.recipe)
def test_an_encoding_does_not_depend_on_what_was_made_with_it(
    encoder: Encoder, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kvs = []
    for name, capacity in (("together", 512), ("alone", 1)):
        monkeypatch.setattr("ragcache.index.index.capacity", lambda _, capacity=capacity: capacity)
        with Index(tmp_path / name, reader) as index:
            for n, text in enumerate(TEXTS):
                index.put(f"doc{n}", text, [(text, 0, len(text))], {})
            ids = [row.id for row in index.catalog.all_chunks()]

            def near(chunk: str, count: int, ids: list[str] = ids) -> list[str]:
                return [one for one in ids if one != chunk][:count]

            assert list(index.encode(encoder, neighbours=near))[-len(ids) :] == ids
            kvs.append([index.load(chunk, encoder, None).kv for chunk in index.chunks(ids)])
    for found, expected in zip(*kvs, strict=True):
        assert found is not None
        assert expected is not None
        assert_close(found, expected)


def test_one_forward_and_one_transaction_serve_many_chunks(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"forward": 0, "put_standing": 0}

    def counted(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def count(*args: object, **kwargs: object) -> object:
            calls[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, count)

    engine, chunks = make(tmp_path, reader)
    engine.index.prefix()
    counted(reader, "forward")
    counted(engine.index.catalog, "put_standing")
    assert len(list(engine.index.encode(Alone()))) == len(chunks)
    assert calls == {"forward": 1, "put_standing": 1}


def test_an_interrupt_loses_at_most_the_batch_in_the_making(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = make(tmp_path, reader)
    sizes = [len(row.token_ids) for row in engine.index.catalog.all_chunks()]
    monkeypatch.setattr("ragcache.index.index.capacity", lambda _: sum(sizes[:2]))
    made = engine.index.encode(Alone())
    next(made)
    assert len(engine.index.catalog.missing("alone")) == len(chunks) - 2
    monkeypatch.setattr(reader, "forward", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        list(made)
    assert len(engine.index.catalog.missing("alone")) == len(chunks) - 2


def anywhere(chunk: Sized) -> LeftContext:
    return LeftContext()


@given(st.lists(st.lists(st.integers(1, 50))), st.integers(1, 60))
def test_batches_keep_order_lose_nothing_and_are_full(documents: list[list[int]], limit: int) -> None:
    chunks = [[range(size) for size in sizes] for sizes in documents]
    made = [[len(chunk) for chunk, _ in batch] for batch in batches(chunks, anywhere, limit)]
    assert [size for batch in made for size in batch] == [size for sizes in documents for size in sizes]
    assert all(sum(batch) <= limit or len(batch) == 1 for batch in made)
    assert all(sum(batch) + after[0] > limit for batch, after in pairwise(made))


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 6))
def test_a_chunk_waits_for_the_one_before_it_and_begun_documents_go_first(lengths: list[int], limit: int) -> None:
    documents = [[(document, place) for place in range(length)] for document, length in enumerate(lengths)]
    asked, made, begun = 0, set[tuple[int, int]](), set[int]()

    def left(chunk: tuple[int, int]) -> LeftContext | None:
        nonlocal asked
        asked += 1
        document, place = chunk
        return LeftContext() if not place or (document, place - 1) in made else None

    count = 0
    for count, batch in enumerate(batches(documents, left, 2 * limit), start=1):  # noqa: B007
        names = [name for name, _ in batch]
        assert len({document for document, _ in names}) == len(names) <= limit  # a pair weighs 2
        unfinished = {document for document in begun if (document, lengths[document] - 1) not in made}
        assert unfinished <= {document for document, _ in names}, "what was begun goes on"
        begun |= {document for document, _ in names}
        made |= set(names)
    assert made == {chunk for document in documents for chunk in document}
    assert asked <= 2 * len(made) + count


def test_what_can_not_be_made_holds_up_nothing_that_can() -> None:
    documents = [["a", "never", "b"], ["never", "never"], ["c"]]
    made = batches(documents, lambda name: None if name == "never" else LeftContext(), 2)
    assert sorted(name for batch in made for name, _ in batch) == ["a", "b", "c"]


def test_a_batch_takes_documents_from_their_source_only_as_it_needs_them() -> None:
    drawn: list[int] = []
    next(batches(((drawn.append(n) or ["c"]) for n in range(100)), anywhere, 10))  # type: ignore[func-returns-value]
    assert len(drawn) <= 11, "what is loaded for a chunk's left context waits in memory"


def test_a_left_context_weighs_less_than_what_is_computed(reader: Reader) -> None:
    left = LeftContext((reader.encode([5] * 80),))
    assert weight(10, LeftContext()) == 10
    assert 10 < weight(10, left) < 90


def test_a_tokenizer_without_line_ends_has_no_sink(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "tokenizer", lambda text, **_: {"input_ids": []})
    with pytest.raises(UnsupportedModel, match="link0"):
        Sink().encode(reader, [])
