"""Chunks as they stood in earlier prompts: what is kept of a prompt, which variant serves, and what of it is fixed."""

from collections.abc import Callable, Sequence
from math import ceil, exp
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_model
from staged import QUESTION, TEXTS, make
from torch import Tensor
from transformers import DynamicCache
from twin import twin_logits

from ragcache.encode import Harvested, PastPrompt
from ragcache.encode.harvested import INTER_ATTENTION
from ragcache.engine.calibrate import calibrate
from ragcache.engine.chat import Message
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, StorageFull
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.architecture import cache_argument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM, Prompt
from ragcache.report import CacheReport
from ragcache.schedule import CacheFix
from ragcache.select import InterAttention
from ragcache.store import EncodingRow, LocalStore

ROW = METHODS["cachecraft"]
ARCHITECTURES = ("llama", "qwen3", "gemma3")
ONE = Sampling(max_new_tokens=1)


def answer(engine: Engine, chunks: Sequence[Chunk | str], row: Method = ROW) -> CacheReport:
    return engine.answer(QUESTION, chunks, method=row, sampling=ONE).report


def variants(index: Index, chunk: Chunk) -> list[EncodingRow]:
    return index.catalog.encodings(chunk.id, "harvested")


def before(index: Index, chunk: Chunk) -> list[tuple[str, ...]]:
    """What stood in front of each variant of a chunk, the newest first."""
    return [tuple((row.about or {})["before"]) for row in variants(index, chunk)]


@torch.no_grad()
def stock(architecture: str, prompt: Prompt) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """K and V of a prompt per layer, and its attention, (layers, slots, slots), by transformers' eager attention."""
    model = tiny_model(architecture)
    model.set_attn_implementation("eager")
    cache = DynamicCache()
    output = model(
        input_ids=torch.tensor([prompt.token_ids]), use_cache=True, output_attentions=True,
        **cache_argument(model, cache),
    )  # fmt: skip
    kvs = [(layer.keys[0], layer.values[0]) for layer in cache.layers]
    return kvs, torch.stack([layer[0].double().mean(0) for layer in output.attentions])


def by_hand(attention: Tensor, prompt: Prompt, segment: int) -> tuple[list[list[float]], list[float], Tensor, float]:
    """inter per layer and earlier chunk, intra per layer, inter per token, and CCI, from whole attention matrices."""
    spans = [prompt.span(one) for one in range(1, segment + 1)]
    own, lengths = spans[-1], [span.stop - span.start for span in spans]
    inter = [[float(layer[own, span].sum()) for span in spans[:-1]] for layer in attention]
    intra = [float(layer[own, own].sum()) for layer in attention]
    tokens = torch.zeros(lengths[-1], dtype=torch.float64)
    for layer in attention:
        tokens += layer[own, spans[0].start : own.start].sum(1) / len(attention)
    a = sum(value / length for layer in inter for value, length in zip(layer, lengths[:-1], strict=True))
    a /= len(attention) * lengths[-1]
    b = sum(intra) / len(attention) / lengths[-1] ** 2
    return inter, intra, tokens, 1 / (1 + exp(-a / b))


def shared(old: Sequence[int], looked: Sequence[float], new: Sequence[int]) -> float:
    """beta' with the Kendall tau distance written as a count over all pairs."""
    common = [chunk for chunk in old if chunk in new]
    beta = sum(mass for chunk, mass in zip(old, looked, strict=True) if chunk in new) / sum(looked) if old else 0.0
    pairs = [(a, b) for i, a in enumerate(common) for b in common[i + 1 :]]
    swapped = [new.index(a) > new.index(b) for a, b in pairs]
    return beta * (1 - (sum(swapped) / len(pairs) if pairs else 0))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_what_is_kept_of_a_prompt_is_what_a_full_prefill_made_of_it(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    engine, chunks = make(tmp_path, readers(architecture))
    old = engine.prefill(QUESTION, chunks, method="full").prompt
    kvs, attention = stock(architecture, old)
    report = answer(engine, chunks)
    assert [chunk.cache for chunk in report.chunks] == ["miss"] * 4
    for segment, chunk in zip(old.chunks(), chunks, strict=True):
        [row] = variants(engine.index, chunk)
        kv = engine.index.load(chunk, Harvested(), row.left).kv
        assert kv is not None
        assert kv.start == old.starts[segment]
        for ours, (key, value) in zip(kv.layers, kvs, strict=True):
            torch.testing.assert_close(ours, torch.stack([key, value])[:, :, old.span(segment)], atol=1e-4, rtol=1e-4)
        inter, intra, tokens, cci = by_hand(attention, old, segment)
        torch.testing.assert_close(kv.extras[INTER_ATTENTION].double(), tokens, atol=1e-5, rtol=1e-4)
        past = PastPrompt.from_dict(row.about or {})
        assert past.before == tuple(one.id for one in chunks[: segment - 1])
        assert past.lengths == tuple(len(one.segment) for one in chunks[: segment - 1])
        assert past.inter == tuple(tuple(pytest.approx(value, rel=1e-4) for value in layer) for layer in inter)
        assert past.intra == tuple(pytest.approx(value, rel=1e-4) for value in intra)
        assert past.cci == pytest.approx(cci, rel=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_answer_recomputes_of_each_chunk_what_its_overhead_says(
    architecture: str, readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    """Which tokens, by formulas of whole attention matrices; what comes of it, by stock attention and one mask."""
    engine, chunks = make(tmp_path, readers(architecture))
    old = engine.prefill(QUESTION, chunks, method="full").prompt
    _, attention = stock(architecture, old)
    answer(engine, chunks)
    order = [2, 0, 1, 3]
    ready = engine.prefill(QUESTION, [chunks[n] for n in order], method=ROW, recompute=0.4)
    assert [chunk.cache for chunk in ready.report.chunks] == ["hit"] * 4
    expected = torch.zeros(len(ready.prompt), dtype=torch.bool)
    lefts: dict[int, Sequence[int]] = {0: ()}
    for place, n in enumerate(order):
        inter, _, tokens, cci = by_hand(attention, old, n + 1)
        looked = [sum(layer[j] for layer in inter) for j in range(n)]
        overhead = min(1.0, 2 * 0.4 * cci * (1 - shared(range(n), looked, order[:place])))
        count = ceil(overhead * len(tokens))
        chosen = tokens.argsort(descending=True, stable=True)[:count]
        expected[ready.prompt.slots[place + 1] + chosen] = True
        lefts[place + 1] = old.token_ids[: old.slots[n + 1]]
    assert 0 < int(expected.sum()) < len(expected)
    assert torch.equal(ready.recomputed, expected)
    logits = twin_logits(engine.reader, ready.prompt, lefts, expected)
    torch.testing.assert_close(ready.logits, logits, atol=1e-4, rtol=1e-4)


PAST = PastPrompt(("a", "b", "c"), (10, 20, 5), 10, ((2.0, 4.0, 1.0), (0.0, 2.0, 1.0)), (3.0, 5.0))


@pytest.mark.parametrize(
    ("ahead", "overlap"),
    [
        ([], 0.0),
        (["x", "y"], 0.0),
        (["a", "b", "c"], 1.0),
        (["x", "a", "y", "b", "c"], 1.0),
        (["b"], 0.6),
        (["a", "c"], 0.4),
        (["c", "b", "a"], 0.0),
        (["b", "a", "c"], 2 / 3),
        (["c", "b"], 0.0),
    ],
)
def test_overlap_by_hand(ahead: list[str], overlap: float) -> None:
    assert PAST.overlap(ahead) == pytest.approx(overlap)
    a = ((2 / 100 + 4 / 200 + 1 / 50) + (0 + 2 / 200 + 1 / 50)) / 2
    cci = 1 / (1 + exp(-a / (4 / 100)))
    assert PAST.cci == pytest.approx(cci)
    assert PAST.overhead(ahead) == pytest.approx(cci * (1 - overlap))


def test_a_chunk_that_stood_alone_keeps_nothing_of_its_context_behind_others() -> None:
    alone = PastPrompt((), (), 10, ((), ()), (3.0, 5.0))
    assert alone.cci == 0.5
    assert alone.overhead([]) == 0
    assert alone.overhead(["a"]) == 0.5


def test_the_overhead_chooses_nothing_a_share_or_the_whole_chunk(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, b, c, d])
    extra = engine.prefill(QUESTION, [d, a, b, c], method=ROW, recompute=0.99).report.chunks
    assert extra[0].recomputed == extra[0].tokens, "nothing of what it stood behind is in front of it"
    assert extra[2].recomputed == extra[3].recomputed == 0, "all of it is, in the old order"
    half = engine.prefill(QUESTION, [d, a, b, c], method=ROW, recompute=0.3).report.chunks
    assert 0.3 <= half[0].recomputed / half[0].tokens < 0.61
    assert sum(one.recomputed for one in engine.prefill(QUESTION, [d, a], method=ROW, recompute=0.0).report.chunks) == 0


def test_the_same_prompt_again_is_exact_and_nothing_is_harvested(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader)
    first, again = answer(engine, chunks), answer(engine, chunks)
    assert first.ms.harvest > 0
    assert 0 < first.harvest_flops < 1
    assert first.as_dict()["harvest_flops"] == first.harvest_flops
    assert [chunk.cache for chunk in again.chunks] == ["exact"] * 4
    assert again.harvest_flops == 0
    assert all(len(variants(engine.index, chunk)) == 1 for chunk in chunks)


def test_harvesting_comes_behind_the_answer_and_counts_in_none_of_its_times(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = make(tmp_path, reader)
    harvest, seen = Harvested.harvest, list[float]()

    def watched(*given: Any) -> Any:
        seen.append(stream.report.ms.total)
        return harvest(*given)

    monkeypatch.setattr(Harvested, "harvest", watched)
    stream = engine.stream(QUESTION, chunks, method=ROW, sampling=Sampling(max_new_tokens=3))
    assert not seen, "the first token is there, the answer is not"
    ms = stream.answer.report.ms
    assert seen == [ms.total], "the answer had ended"
    assert ms.load + ms.place + ms.select + ms.prefill <= ms.first_token <= ms.total
    assert ms.harvest > 0


def test_an_answer_that_nobody_reads_to_its_end_keeps_nothing(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader)
    stream = engine.stream(QUESTION, chunks, method=ROW)
    next(iter(stream))
    assert not any(variants(engine.index, chunk) for chunk in chunks)


def test_the_variant_serves_whose_context_is_most_alike(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, d])
    answer(engine, [c, b, d])
    assert before(engine.index, d) == [(c.id, b.id), (a.id,)]
    keys = [row.key for row in variants(engine.index, d)]
    for ahead, expected in (([b, a], keys[1]), ([a, c, b], keys[0]), ([c, a, b], keys[0])):
        load = engine.index.load(d, Harvested(), None, [chunk.id for chunk in ahead])
        assert load.key == expected
    assert "100% of what it looked at stands in front of it" in load.reason


def test_a_chunk_is_harvested_again_only_where_little_of_its_context_is_left(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, b, d])
    answer(engine, [c, a, b, d])
    assert before(engine.index, d) == [(a.id, b.id)]
    assert before(engine.index, a) == [(c.id,), ()], "it had stood behind nothing"
    answer(engine, [c, d])
    assert before(engine.index, d) == [(c.id,), (a.id, b.id)]
    keen = Method("keen", Harvested(overlap=1.1), InterAttention(), 0.3, schedule=CacheFix())
    answer(engine, [b, a, b, d], keen)
    assert len(variants(engine.index, d)) == 3


def test_variants_are_bounded_and_the_one_of_least_use_goes(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    row = Method("two", Harvested(variants=2), InterAttention(), 0.3, schedule=CacheFix())
    answer(engine, [a, d], row)
    answer(engine, [b, d], row)
    first = variants(engine.index, d)
    answer(engine, [a, d], row)  # which serves the older one once more
    answer(engine, [c, d], row)
    assert before(engine.index, d) == [(c.id,), (a.id,)]
    assert not engine.index.store.head(first[0].key)
    with pytest.raises(InvalidArgument, match="variants is 0"):
        Harvested(variants=0)


def test_worth_is_the_uses_each_by_what_it_saved(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, b, d])
    answer(engine, [a, b, d])
    [row] = variants(engine.index, d)
    assert row.worth == 1
    answer(engine, [b, c, d])
    past = PastPrompt.from_dict(row.about or {})
    known = next(one for one in variants(engine.index, d) if one.key == row.key)
    assert known.worth == pytest.approx(1 + 1 - past.overhead([b.id, c.id]))


def carried(index: Index, gone: Chunk, chunks: Sequence[Chunk]) -> list[str]:
    """Keys of variants of some chunks that were made behind a chunk."""
    return [row.key for one in chunks for row in variants(index, one) if gone.id in (row.about or {})["before"]]


@pytest.mark.parametrize("evicted", [False, True])
def test_what_stood_behind_a_removed_document_goes_with_it(reader: Reader, tmp_path: Path, evicted: bool) -> None:
    """Even where the removed chunk's own KV had been let go of before."""
    engine, (a, b, c, d) = make(tmp_path, reader)
    index = engine.index
    answer(engine, [a, b, c])
    answer(engine, [b, d])
    keys = carried(index, a, [b, c])
    assert len(keys) == 2
    own = [row.key for row in variants(index, a)]
    if evicted:
        index.evict(own)
        assert not variants(index, a)
        assert carried(index, a, [b, c]) == keys, "what was made with it stays"
    index.remove("doc0")
    assert not {*keys, *own} & set(index.store.list())
    assert not carried(index, a, [b, c, d])
    assert before(index, d) == [(b.id,)], "which never stood behind it"
    served = engine.prefill(QUESTION, [b, c, d], method=ROW).report.chunks
    assert [chunk.cache for chunk in served] == ["exact", "miss", "hit"]


def labelled(index: Index, number: int, label: frozenset[str] | None) -> None:
    text = TEXTS[number]
    index.put(f"doc{number}", text, [(text, 0, len(text))], {}, [label])


def test_nothing_is_kept_behind_what_a_reader_may_not_read(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    labelled(engine.index, 1, frozenset("x"))
    labelled(engine.index, 3, frozenset("x"))
    answer(engine, [a, b, c, d])
    assert before(engine.index, b) == [(a.id,)], "all of its readers may read what everybody may"
    assert not variants(engine.index, c)
    assert not variants(engine.index, d), "which stands behind what could not be kept"
    labelled(engine.index, 0, frozenset("y"))
    assert not variants(engine.index, a)
    assert not variants(engine.index, b), "others may read what it stood behind"


def test_a_label_that_changes_while_a_prompt_is_harvested_is_obeyed(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, (a, b, *_) = make(tmp_path, reader)
    harvest = Harvested.harvest

    def relabelled(*given: Any) -> Any:
        labelled(engine.index, 0, frozenset("x"))
        return harvest(*given)

    monkeypatch.setattr(Harvested, "harvest", relabelled)
    answer(engine, [a, b])
    assert variants(engine.index, a)
    assert not variants(engine.index, b)


def test_nothing_is_kept_behind_text_that_no_document_has(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, _) = make(tmp_path, reader)
    answer(engine, [a, "Nobody can ask to have this forgotten.", b, c])
    assert before(engine.index, a) == [()]
    assert not variants(engine.index, b)
    assert not variants(engine.index, c)
    stream = engine.complete(f"{a.text}\n\n{b.text}\n\nWho built it?", method=ROW, sampling=ONE)
    assert len(list(stream)) <= 1
    assert not variants(engine.index, b), "the prompt does not begin with the system prefix"


def test_nothing_is_kept_behind_what_a_user_wrote_between_chunks(reader: Reader, tmp_path: Path) -> None:
    engine, (a, _, c, d) = make(tmp_path, reader)
    words = f"{BEFORE_CHUNKS}{a.text}\n\nMine alone.\n\n{c.text}\n\n{d.text}\n\n{BEFORE_QUESTION}{QUESTION}"
    stream = engine.complete([Message("system", SYSTEM), Message("user", words)], method=ROW, sampling=ONE)
    assert [chunk.id for chunk in stream.answer.report.chunks] == [a.id, c.id, d.id]
    assert before(engine.index, a) == [()]
    assert before(engine.index, c) == before(engine.index, d) == []


def test_a_full_disk_costs_no_answer(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = make(tmp_path, reader)
    answer(engine, [], METHODS["naive"])  # the system prefix is stored

    def refuse(*_: object) -> None:
        raise StorageFull("the disk refused a write")

    monkeypatch.setattr(LocalStore, "put_if_absent", refuse)
    assert any("was not kept: the disk refused a write" in note for note in answer(engine, chunks).notes)


def test_questions_at_once_recompute_what_each_alone_does_and_harvest_once(reader: Reader, tmp_path: Path) -> None:
    engine, (a, b, c, d) = make(tmp_path, reader)
    answer(engine, [a, b, c, d])
    pairs = [("Who?", [d, a, b]), ("Why?", [d, a, b]), ("Why?", [b, c])]
    alone = [engine.prefill(question, chunks, method=ROW).report.tokens for question, chunks in pairs]
    together = engine.answers(pairs, method=ROW, sampling=ONE)
    assert [one.report.tokens.recomputed for one in together] == [tokens.recomputed for tokens in alone]
    assert before(engine.index, d) == [(), (a.id, b.id, c.id)]
    assert before(engine.index, b) == [(), (a.id,)]


def test_ingestion_makes_nothing_of_it_and_no_question_is_refused(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    assert engine.index.missing(Harvested()) == []
    assert engine.index.lacking(Harvested()) == {}
    assert list(engine.index.encode(Harvested())) == []
    assert [chunk.cache for chunk in answer(engine, chunks).chunks] == ["miss"] * 4
    assert calibrate(Engine(reader, engine.index, ROW)) is None
