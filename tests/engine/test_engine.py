"""The engine's promises: threads, budgets, reports, and clear refusals."""

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import tiny_reader
from staged import QUESTION, TEXTS, make

from ragcache.encode import Alone, Encoder
from ragcache.engine.chat import Message
from ragcache.engine.engine import Engine
from ragcache.engine.request import RequestOptions
from ragcache.errors import IncompleteAnswer, InvalidArgument, MissingEncoding, PromptTooLong, UnknownMethod
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.buffer import ChunkKV
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.select import QuestionAttention

SHORT = Sampling(max_new_tokens=6)


@pytest.fixture
def ready(tmp_path: Path, reader: Reader) -> tuple[Engine, list[Chunk]]:
    return make(tmp_path, reader, "naive", "fusionrag", "link0")


def test_eight_threads_with_different_methods_give_the_sequential_answers(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    work = [(name, chunks[i:] + chunks[:i]) for i, name in enumerate([*METHODS][:8])]

    def ask(name: str, order: list[Chunk]) -> tuple[tuple[int, ...], int]:
        answer = engine.answer(QUESTION, order, method=name, sampling=SHORT)
        return answer.token_ids, answer.report.tokens.recomputed

    expected = [ask(*item) for item in work]
    for _ in range(3):
        found: dict[int, object] = {}

        def run(slot: int, found: dict[int, object] = found) -> None:
            found[slot] = ask(*work[slot])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(work))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[i] for i in range(len(work))] == expected


def test_a_stream_gives_the_same_text_as_an_answer(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    stream = engine.stream(QUESTION, chunks, method="naive", sampling=SHORT)
    assert "".join(stream).strip() == stream.answer.text
    assert stream.answer.token_ids == engine.answer(QUESTION, chunks, method="naive", sampling=SHORT).token_ids


def test_a_stream_left_half_read_is_finished_not_begun_again(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    whole = engine.answer(QUESTION, chunks, method="naive", sampling=Sampling(max_new_tokens=12))
    stream = engine.stream(QUESTION, chunks, method="naive", sampling=Sampling(max_new_tokens=12))
    next(iter(stream))
    assert stream.answer.token_ids == whole.token_ids
    assert stream.answer.text == whole.text


@pytest.mark.parametrize("read", [0, 1])
def test_a_stream_that_nobody_reads_on_lets_go_of_its_kv_at_once(ready: tuple[Engine, list[Chunk]], read: int) -> None:
    engine, chunks = ready
    stream = engine.stream(QUESTION, chunks, method="naive", sampling=SHORT)
    for _ in range(read):
        next(iter(stream))
    held = weakref.ref(stream._writing.prefilled)
    gc.disable()
    try:
        del stream
        assert held() is None
    finally:
        gc.enable()


def test_an_answer_that_broke_off_is_no_whole_one(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    stream = engine.stream(QUESTION, chunks, method="naive", sampling=SHORT)
    seen: list[object] = []

    def watch(logits: object) -> None:
        seen.append(logits)
        if len(seen) == 3:
            raise KeyboardInterrupt

    stream.watch_logits(watch)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    with pytest.raises(IncompleteAnswer, match="broke off after 2 tokens; ask again"):
        _ = stream.answer


def test_the_stock_answer_equals_generate(ready: tuple[Engine, list[Chunk]]) -> None:
    import torch

    engine, chunks = ready
    answer = engine.answer(QUESTION, chunks, method="full", sampling=SHORT)
    prompt = engine.prefill(QUESTION, chunks, method="full").prompt
    ids = torch.tensor([prompt.token_ids])
    generated = engine.reader.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, pad_token_id=0
    )
    stop = engine.reader.stop_ids
    expected = [token for token in generated[0, ids.shape[1] :].tolist() if token not in stop]
    assert list(answer.token_ids) == expected


def test_text_that_was_never_ingested_is_a_miss_and_is_answered(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    report = engine.answer(QUESTION, [chunks[0], "Something new."], method="naive", sampling=SHORT).report
    assert [c.cache for c in report.chunks] == ["hit", "miss"]
    assert report.chunks[1].reason
    assert report.charged > 0, "a miss is computed, and computing is charged"


def test_a_prompt_without_chunks_is_answered(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    naive = engine.answer(QUESTION, [], method="fusionrag", sampling=SHORT)
    assert naive.token_ids == engine.answer(QUESTION, [], method="full", sampling=SHORT).token_ids
    assert naive.report.chunks == ()


def test_the_same_chunk_twice_is_placed_twice(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    report = engine.prefill(QUESTION, [chunks[0], chunks[1], chunks[0]], method="naive").report
    assert report.cached == 3


def test_a_comparison_is_measured_on_the_same_ids(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    answer = engine.answer(QUESTION, chunks, method="random", recompute=1.0, sampling=SHORT, compare=True)
    assert answer.comparison is not None
    assert answer.comparison.same_answer
    assert answer.comparison.full_prefill_first_token_ms > 0
    assert "full prefill" in answer.report.line(answer.comparison)
    assert set(answer.as_dict()["compare"]) == {"full_prefill_first_token_ms", "speedup", "same_answer"}


def test_full_prefill_is_of_the_prompt_as_the_method_has_arranged_it(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    asked = engine.requests.from_question(QUESTION, chunks, RequestOptions("infoflow"))
    prompts = []
    for request in (asked, asked.repeated_in_full(engine.start(asked).prompt)):
        prompts.append(engine.start(request).prompt.token_ids)
    assert prompts[0] == prompts[1]
    assert prompts[0] != engine.start(asked.by_full_prefill()).prompt.token_ids


def test_a_missing_chunk_that_stands_there_twice_is_a_miss_in_one_place(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    first, encoder = chunks[0], METHODS["naive"].encode
    assert encoder is not None
    engine.index.forget([row.key for row in engine.index.catalog.encodings(first.id, encoder.recipe)])
    report = engine.prefill(QUESTION, [first, chunks[1], first], method="naive").report
    assert [chunk.cache for chunk in report.chunks] == ["miss", "hit", "hit"]
    assert report.charged == pytest.approx(len(first.segment) / sum(chunk.tokens for chunk in report.chunks))


@pytest.mark.parametrize(("method", "share"), [("prophetkv", 1.0), ("infoflow", 0.15), ("infoflow", 1.0)])
def test_what_is_missing_is_made_and_charged_once(
    ready: tuple[Engine, list[Chunk]], monkeypatch: pytest.MonkeyPatch, method: str, share: float
) -> None:
    engine, _ = ready
    made: list[str] = []
    make_kv = Index.make

    def make_noted(index: Index, chunk: Chunk, encoder: Encoder) -> ChunkKV:
        made.append(chunk.text)
        return make_kv(index, chunk, encoder)

    monkeypatch.setattr(Index, "make", make_noted)
    texts = ["The first is of no document.", "Nor is the second one.", "The first is of no document."]
    report = engine.prefill(QUESTION, texts, method=method, recompute=share).report
    assert sorted(made) == sorted(set(texts))
    again = next(chunk for chunk in report.chunks if chunk.cache == "hit")
    assert sorted(chunk.cache for chunk in report.chunks) == ["hit", "miss", "miss"]
    assert again.reason == "made for this prompt"
    selectable = sum(chunk.tokens for chunk in report.chunks)
    assert report.charged == pytest.approx((selectable - again.tokens + again.recomputed) / selectable)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_outside_zero_to_one_is_refused(ready: tuple[Engine, list[Chunk]], share: float) -> None:
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        ready[0].prefill(QUESTION, ready[1], method="epic", recompute=share)


@pytest.mark.parametrize("name", ["full", "naive", "prefix", "link0"])
def test_a_fixed_cost_row_refuses_the_dial_by_name(ready: tuple[Engine, list[Chunk]], name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        ready[0].prefill(QUESTION, ready[1], method=name, recompute=0.5)


def test_an_unknown_method_is_refused_with_the_list(ready: tuple[Engine, list[Chunk]]) -> None:
    with pytest.raises(UnknownMethod, match=r"nave.*naive"):
        ready[0].prefill(QUESTION, ready[1], method="nave")


def test_a_blank_question_is_refused(ready: tuple[Engine, list[Chunk]]) -> None:
    with pytest.raises(InvalidArgument, match="blank"):
        ready[0].prefill("  \n", ready[1], method="naive")


def test_a_prompt_beyond_the_models_limit_is_refused(tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tiny_reader("llama", max_position_embeddings=256), "naive")
    assert engine.answer(QUESTION, chunks[:1], method="naive", sampling=SHORT).report.cached == 1
    with pytest.raises(PromptTooLong, match="256"):
        engine.answer(QUESTION, chunks, method="naive", sampling=SHORT)


def test_a_prompt_beyond_the_limit_is_refused_before_a_layout_looks_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, chunks = make(tmp_path, tiny_reader("llama", max_position_embeddings=256), "infoflow")
    monkeypatch.setattr(Reader, "forward", lambda *_: pytest.fail("something was computed"))
    with pytest.raises(PromptTooLong, match="256"):
        engine.answer(QUESTION, [*chunks, "Text of no document."], method="infoflow", sampling=SHORT)


def test_an_encoding_the_index_lacks_is_named_with_its_command_on_every_path(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "naive")
    lacking: list[Callable[[], object]] = [
        lambda: engine.check_encoding(METHODS["fusionrag"]),
        lambda: engine.answer(QUESTION, chunks, method="fusionrag"),
        lambda: engine.answer(QUESTION, chunks, method="fusionrag", history=[Message("user", "Hello.")]),
        lambda: engine.answers([(QUESTION, chunks)], method="fusionrag"),
        lambda: engine.stream(QUESTION, chunks, method="fusionrag"),
        lambda: engine.complete(TEXTS[0], method="fusionrag"),
    ]
    for ask in lacking:
        with pytest.raises(MissingEncoding, match=r"ragcache ingest --method fusionrag"):
            ask()
    engine.check_encoding(METHODS["cacheblend"])  # shares naive's encoding


def test_ones_own_method_is_a_replaced_row(ready: tuple[Engine, list[Chunk]]) -> None:
    from dataclasses import replace

    engine, chunks = ready
    row = replace(METHODS["fusionrag"], select=QuestionAttention(layers=(0.5, -1), reduce="max"))
    assert engine.prefill(QUESTION, chunks, method=row, recompute=0.3).report.tokens.recomputed > 0
    with pytest.raises(InvalidArgument, match="value_deviation"):
        Method("broken", Alone(), _Greedy(), 0.1)


class _Greedy(QuestionAttention):
    needs = ("value_deviation",)


def test_selectors_choose_what_they_say(ready: tuple[Engine, list[Chunk]], readers: Callable[[str], Reader]) -> None:
    engine, chunks = ready
    report = engine.prefill(QUESTION, chunks, method="epic", recompute=0.1).report
    counts = [c.recomputed for c in report.chunks]
    assert max(counts) - min(counts) <= 1, "the first tokens of every chunk, evenly"
    once, again = (engine.prefill(QUESTION, chunks, method="random", recompute=0.3).logits for _ in range(2))
    assert (once == again).all()


def test_an_engine_serves_an_index_of_its_own_texts(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "fresh", reader) as index:
        answer = Engine(reader, index).answer(QUESTION, list(TEXTS), method="fusionrag", sampling=SHORT)
    assert [c.cache for c in answer.report.chunks] == ["miss"] * len(TEXTS)
