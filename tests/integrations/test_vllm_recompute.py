"""What a vLLM worker computes within a load, on our own model: nothing here needs vLLM."""

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from vllm_ragcache.recompute import Recompute, build_context, compute_within_load
from vllm_ragcache.served_index import Composition, Piece
from vllm_ragcache.served_model import why_not_recompute
from vllm_ragcache.wanted import WORKER, count_first_pass, parse_wanted

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.buffer import ChunkKV
from ragcache.model.loading import load_reader
from ragcache.prompt import Prompt

TEXTS = (
    "The Otter ferry crosses the sound every hour. It carries forty cars and two hundred people.",
    "The Tide project is led by Mara Voss. Its office stands in Kelmar, behind the old mill.",
    "Visitors are asked to ring the bell twice, and then to wait until somebody opens the door for them.",
)
QUESTION = "Who leads the Tide project?"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    reader = load_reader("bundled", dtype="float32")
    with Index(tmp_path_factory.mktemp("index") / "index", reader) as index:
        for number, text in enumerate(TEXTS):
            index.put(f"{number}.md", "", [(text, 0, len(text))], {})
        for method in ("naive", "auto"):
            list(index.encode(METHODS[method].encode))
        yield Engine(reader, index)


def pieces_of(prompt: Prompt, exact: Collection[int]) -> tuple[Piece, ...]:
    """What a connector would load of a prompt: the system prefix and all chunks."""
    return tuple(
        Piece("key", 0, prompt.slots[i], len(prompt.segments[i]), prompt.segments[i].chunk, i in exact)
        for i in (0, *prompt.chunks())
    )


def load(engine: Engine, prompt: Prompt, method: str, pieces: Sequence[Piece]) -> Any:
    """A buffer with the pieces in place, as a worker's loader fills it."""
    reader, index = engine.reader, engine.index
    buffer, encoder = reader.buffer(len(prompt)), METHODS[method].encode
    chunks = {chunk.id: chunk for chunk in index.chunks([piece.chunk for piece in pieces if piece.chunk])}
    for piece in pieces:
        kv = index.load(chunks[piece.chunk], encoder, None).kv if piece.chunk else index.prefix().kvs[0]
        assert isinstance(kv, ChunkKV)
        reader.place(buffer, kv, piece.slot, piece.slot)
    return buffer


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("method", ["epic", "cacheblend", "cacheblend-v", "prophetkv", "qcfuse", "auto", "random"])
def test_what_is_computed_within_a_load_is_what_the_engine_computes(engine: Engine, method: str, share: float) -> None:
    chunks = engine.index.chunks([id for id, _ in reversed(engine.index.catalog.places())])
    ours = engine.prefill(QUESTION, chunks, method=method, recompute=share)
    prompt, end = ours.prompt, ours.prompt.slots[ours.prompt.question]
    pieces, question = pieces_of(prompt, ours.context.exact), prompt.span(prompt.question)
    wanted = Recompute(prompt.token_ids, (question.start, question.stop), method, share)
    for at_once in (1000, 7):
        buffer = load(engine, prompt, method, pieces)
        seen = build_context(engine.reader, buffer, pieces, wanted)
        assert seen.prompt.span(seen.prompt.question) == question
        computed = compute_within_load(engine.reader, buffer, pieces, wanted, at_once=at_once)
        assert (computed.recomputed, computed.fresh) == (int(ours.recomputed.sum()), 0)
        assert computed.charged == pytest.approx(ours.report.charged)
        for mine, theirs in zip(buffer.read(0, end), ours.context.buffer.read(0, end), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_what_stands_between_chunks_is_computed_and_what_is_exact_is_not(engine: Engine) -> None:
    chunks = engine.index.chunks([id for id, _ in engine.index.catalog.places()])
    prompt = engine.prefill(QUESTION, chunks, method="naive").prompt
    pieces = [piece for piece in pieces_of(prompt, exact=(0, 1)) if piece.slot != prompt.slots[2]]
    question = prompt.span(prompt.question)
    wanted = Recompute(prompt.token_ids, (question.start, question.stop), "naive", 0.0)
    buffer = load(engine, prompt, "naive", pieces)
    computed = compute_within_load(engine.reader, buffer, pieces, wanted, at_once=1000)
    assert (computed.recomputed, computed.fresh, computed.charged) == (0, len(prompt.segments[2]), 0.0)
    context = build_context(engine.reader, buffer, pieces, wanted)
    assert int(context.selectable.sum()) == pieces[-1].count
    full, hole = engine.reader.buffer(len(prompt)), slice(prompt.slots[2], prompt.slots[3])
    engine.reader.place(full, engine.reader.encode(prompt.token_ids[: hole.stop]), 0, 0)
    far = (full.read(hole.start, hole.stop)[0] - buffer.read(hole.start, hole.stop)[0]).abs().max()
    assert far < 1e-5  # of the first layer, where nothing depends on what was loaded


def test_the_first_pass_is_as_long_as_its_selector_makes_it() -> None:
    pieces = (Piece("p", 0, 0, 10, exact=True), Piece("a", 0, 10, 30, "a"), Piece("b", 0, 45, 20, "b"))
    found = Composition(pieces)
    assert (found.end, found.fresh, found.inexact) == (65, 5, 55)
    rows = {name: count_first_pass(METHODS[name], found, 12) for name in ("epic", "cacheblend", "prophetkv")}
    assert rows == {"epic": 0, "cacheblend": 55, "prophetkv": 17}


def test_a_server_that_cannot_recompute_says_why() -> None:
    for asked in ({"method": "epic"}, {"method": "auto", "recompute": 0.15}):
        with pytest.raises(InvalidArgument, match=r"15% of the tokens, and this server only loads: it was started so"):
            parse_wanted({"ragcache": asked}, "auto", unable="it was started so")


@pytest.mark.parametrize(
    ("part", "changes", "reason"),
    [
        ("parallel_config", {"worker_cls": "auto"}, f"--worker-cls {WORKER}"),
        ("parallel_config", {"pipeline_parallel_size": 2}, "--pipeline-parallel-size"),
        ("parallel_config", {"data_parallel_size": 2}, "--data-parallel-size"),
        (None, {"lora_config": "some"}, "--enable-lora"),
        ("model_config", {"uses_mrope": True}, "several dimensions"),
        ("model_config", {"hf_text_config": SimpleNamespace(attn_logit_softcapping=50.0)}, "caps its attention"),
        (None, {}, ""),
    ],
)
def test_recompute_needs_the_worker_class_and_the_whole_model(
    part: str | None, changes: dict[str, Any], reason: str
) -> None:
    parallel = {"worker_cls": WORKER, "pipeline_parallel_size": 1, "data_parallel_size": 1}
    model = SimpleNamespace(uses_mrope=False, hf_text_config=SimpleNamespace())
    config = SimpleNamespace(parallel_config=SimpleNamespace(**parallel), lora_config=None, model_config=model)
    vars(getattr(config, part) if part else config).update(changes)
    assert why_not_recompute(config) == "" if reason == "" else reason in why_not_recompute(config)
