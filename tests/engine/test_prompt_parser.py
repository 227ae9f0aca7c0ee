"""Prompts that somebody else wrote: their own ids, chunks loaded where they stand, and full prefill at one."""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import tiny_reader
from hypothesis import given
from hypothesis import strategies as st
from staged import QUESTION, TEXTS, make

from ragcache.engine.chat import Message, merge_messages
from ragcache.engine.engine import Engine
from ragcache.engine.prompt_parser import PromptParser, find_marked
from ragcache.errors import InvalidArgument, MissingEncoding, UnsupportedModel
from ragcache.index.chunks import Chunk
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling, pieces
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM

SHORT = Sampling(max_new_tokens=4)
ASKED = f"Context:\n---\n{TEXTS[2]}\n\n{TEXTS[0]}\n---\nAnswer briefly.\nQuery: {QUESTION}\nAnswer: "
FOUND = ["doc2", "doc0"]
HOUSE = [
    Message("system", SYSTEM),
    Message("user", f"{BEFORE_CHUNKS}{TEXTS[0]}\n\n{TEXTS[2]}\n\n{BEFORE_QUESTION}{QUESTION}"),
]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, list[Chunk]]]:
    recipes = {row.encode.recipe: row.name for row in METHODS.values() if row.encode}
    engine, chunks = make(tmp_path_factory.mktemp("written"), tiny_reader(), *recipes.values())
    yield engine, chunks
    engine.index.close()


def stock(engine: Engine, text: str) -> torch.Tensor:
    """Logits of the framework's ordinary way: the whole string tokenised, and prefilled."""
    ids = engine.reader.tokenizer(text, add_special_tokens=False)["input_ids"]
    logits, _ = engine.reader.stock(ids)
    return logits


def rendered(engine: Engine, messages: list[Message]) -> str:
    turns = [{"role": message.role, "content": message.content} for message in messages]
    return str(engine.reader.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def states(report: Any) -> list[tuple[str, str]]:
    return [(chunk.source, chunk.cache) for chunk in report.chunks]


@pytest.mark.parametrize("name", METHODS)
def test_every_row_takes_a_plain_string_and_is_full_prefill_at_one(
    ready: tuple[Engine, list[Chunk]], name: str
) -> None:
    engine, _ = ready
    stream = engine.complete(ASKED, method=name, sampling=SHORT)
    assert sorted(source for source, _ in states(stream.report)) == sorted(FOUND)
    if (encoder := METHODS[name].encode) is not None and not encoder.exact_only:
        assert {cache for _, cache in states(stream.report)} == {"hit"}
    if METHODS[name].recompute is not None and METHODS[name].layout == METHODS["full"].layout:
        whole = engine.complete(ASKED, method=name, recompute=1.0, sampling=SHORT)
        torch.testing.assert_close(whole.logits, stock(engine, ASKED), atol=1e-4, rtol=1e-4)


def test_the_ids_are_those_of_the_whole_string(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    written = PromptParser(engine.index).parse(ASKED)
    prompt = written.prompt([chunk.segment for chunk in written.chunks])
    assert list(prompt.token_ids) == engine.reader.tokenizer(ASKED, add_special_tokens=False)["input_ids"]


def test_what_stands_behind_a_chunk_is_kept_where_it_is_not_what_was_stored(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    report = engine.complete(ASKED, method="naive", sampling=SHORT).report
    ends = {chunk.source: chunk.tokens - len(TEXTS[int(chunk.source[-1])].encode()) for chunk in report.chunks}
    assert ends == {"doc2": 2, "doc0": 1}  # "\n\n" behind the first, and only "\n" behind the last


def test_a_conversation_has_the_ids_of_the_chat_template(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    messages = [
        Message("system", f"  Use these.\n\n{TEXTS[0]}\n"),
        Message("user", "Hello"),
        Message("assistant", "Hello."),
        Message("user", f"{TEXTS[2]}\nAnd now? "),
    ]
    stream = engine.complete(messages, method="prophetkv", recompute=1.0, sampling=SHORT)
    assert states(stream.report) == [("doc0", "hit"), ("doc2", "hit")]
    torch.testing.assert_close(stream.logits, stock(engine, rendered(engine, messages)), atol=1e-4, rtol=1e-4)
    assert stream.answer.question == "And now?"


@pytest.mark.parametrize("name", "naive prefix cacheblend prophetkv fusionrag link0 cacheclip auto".split())
def test_the_house_s_own_prompt_written_by_hand_gives_the_house_s_answer(
    ready: tuple[Engine, list[Chunk]], name: str
) -> None:
    engine, chunks = ready
    asked = engine.stream(QUESTION, [chunks[0], chunks[2]], method=name, sampling=SHORT)
    written = engine.complete(HOUSE, method=name, sampling=SHORT)
    torch.testing.assert_close(written.logits, asked.logits, atol=1e-4, rtol=1e-4)
    assert written.answer.token_ids == asked.answer.token_ids
    assert written.report.tokens.recomputed == asked.report.tokens.recomputed
    assert states(written.report) == states(asked.report)


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n", " \t", "!"])
def test_a_prompt_may_end_with_a_chunk(ready: tuple[Engine, list[Chunk]], end: str) -> None:
    engine, _ = ready
    text = f"{TEXTS[2]}\n\n{TEXTS[0]}{end}"
    stream = engine.complete(text, method="epic", recompute=1.0, sampling=SHORT)
    assert states(stream.report) == [("doc2", "exact"), ("doc0", "hit")]  # nothing stands before the first
    torch.testing.assert_close(stream.logits, stock(engine, text), atol=1e-4, rtol=1e-4)


def test_a_named_chunk_comes_before_a_marked_block_and_that_before_what_is_found(
    ready: tuple[Engine, list[Chunk]],
) -> None:
    engine, chunks = ready
    named = ("See ", chunks[1], f"\n<chunk id=7> {TEXTS[3]} </chunk>\n<chunk>Not ours.</chunk>\n{TEXTS[0]}\n\nWell?")
    text = "".join(part if isinstance(part, str) else part.text for part in named)
    stream = engine.complete([Message("user", named)], method="naive", sampling=SHORT)
    assert states(stream.report) == [("doc1", "hit"), ("doc3", "hit"), ("doc0", "hit")]
    assert stream.report.notes == ("1 marked as chunks are not in the index, and prefilled",)
    plain = engine.complete([Message("user", text)], method="full", sampling=SHORT)
    assert states(plain.report)[0] == ("doc3", "miss")  # a short text in a line with others is not looked for
    whole = engine.complete([Message("user", named)], method="epic", recompute=1.0, sampling=SHORT)
    torch.testing.assert_close(whole.logits, plain.logits, atol=1e-4, rtol=1e-4)


def test_text_that_nobody_knows_is_prefilled(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    stream = engine.complete("Who was it?", method="fusionrag", sampling=SHORT)
    assert stream.report.chunks == ()
    assert stream.report.charged == 0
    torch.testing.assert_close(stream.logits, stock(engine, "Who was it?"), atol=1e-4, rtol=1e-4)


def test_what_is_found_follows_the_index(tmp_path: Path) -> None:
    engine, _ = make(tmp_path, tiny_reader(), "naive")
    new = "A lighthouse keeper wrote down every ship that passed, for thirty-one years."
    assert states(engine.complete(ASKED, method="naive", sampling=SHORT).report) == [(name, "hit") for name in FOUND]
    engine.index.remove("doc0")
    assert states(engine.complete(ASKED, method="naive", sampling=SHORT).report) == [("doc2", "hit")]
    engine.index.put("new", "", [(new, 0, len(new))], {})
    assert states(engine.complete(f"{new}\n\nWho?", method="naive", sampling=SHORT).report) == [("new", "miss")]
    assert states(engine.complete(f"{new}\n\nWho?", method="naive", sampling=SHORT).report) == [("new", "exact")]
    engine.index.close()


@pytest.mark.parametrize("prompt", ["", " \n", [], [Message("user", "  ")], [Message("user", ())]])
def test_a_blank_prompt_is_refused(ready: tuple[Engine, list[Chunk]], prompt: Any) -> None:
    with pytest.raises(InvalidArgument, match="blank"):
        ready[0].complete(prompt, method="naive")


def test_a_method_whose_kv_was_never_made_is_refused(tmp_path: Path, readers: Callable[[str], Any]) -> None:
    engine, _ = make(tmp_path, readers("llama"), "naive")
    with pytest.raises(MissingEncoding, match="ragcache ingest --method fusionrag"):
        engine.complete(ASKED, method="fusionrag")
    engine.index.close()


def test_finding_is_part_of_the_time_to_the_first_token(ready: tuple[Engine, list[Chunk]]) -> None:
    ms = ready[0].complete(ASKED, method="naive", sampling=SHORT).report.ms
    assert 0 < ms.match < ms.first_token


def test_a_reordered_prompt_that_ended_with_a_chunk_ends_with_the_other_chunk_s_last_token(
    ready: tuple[Engine, list[Chunk]],
) -> None:
    engine, chunks = ready
    written = PromptParser(engine.index).parse(f"{TEXTS[2]}\n\n{TEXTS[0]}")
    prompt = written.prompt([chunks[0].segment, chunks[2].segment])
    assert engine.reader.tokenizer.decode(prompt.token_ids) == f"{TEXTS[0]}\n\n{TEXTS[2]}\n\n"
    assert [segment.chunk for segment in prompt.segments] == [chunks[0].id, chunks[2].id, None]
    assert engine.complete(f"{TEXTS[2]}\n\n{TEXTS[0]}", method="infoflow", sampling=SHORT).report.cached == 2


@pytest.mark.parametrize("order", ["whole first", "cut first", "twice cut"])
def test_a_chunk_that_stands_there_whole_and_cut_loses_no_word(ready: tuple[Engine, list[Chunk]], order: str) -> None:
    engine, _ = ready
    whole, begun, less = TEXTS[2], TEXTS[2][:70].rsplit(" ", 1)[0], TEXTS[2][:60].rsplit(" ", 1)[0]
    first, second = {"whole first": (whole, begun), "cut first": (begun, whole), "twice cut": (begun, less)}[order]
    written = f"{first}\n\n{TEXTS[0]}\n\nAs said before:\n\n{second} and so on.\n{QUESTION}"
    parsed = PromptParser(engine.index).parse(written)
    assert [chunk.source for chunk in parsed.chunks] == ["doc2", "doc0", "doc2"]
    segments = [chunk.segment for chunk in parsed.chunks]
    ids = engine.reader.tokenizer(written, add_special_tokens=False)["input_ids"]
    assert list(parsed.prompt(segments).token_ids) == ids
    moved = engine.reader.tokenizer.decode(parsed.prompt([segments[1], segments[0], segments[2]]).token_ids)
    assert max(first, second, key=len) in moved
    assert TEXTS[0] in moved


def test_a_prompt_that_is_the_system_prefix_alone_ends_in_a_fresh_token(tmp_path: Path) -> None:
    reader = tiny_reader()
    reader.tokenizer.chat_template = None
    engine, _ = make(tmp_path, reader, "naive")
    prefix = engine.index.prefix_segment.text
    torch.testing.assert_close(
        engine.complete(prefix, method="naive", sampling=SHORT).logits, stock(engine, prefix), atol=1e-4, rtol=1e-4
    )
    engine.index.close()


def test_the_question_may_stand_before_the_chunks(ready: tuple[Engine, list[Chunk]]) -> None:
    stream = ready[0].complete([Message("user", f"{QUESTION}\n\n{TEXTS[0]}")], method="prophetkv", sampling=SHORT)
    assert stream.answer.question == QUESTION
    assert states(stream.report) == [("doc0", "hit")]


def test_a_message_that_the_template_leaves_out_is_no_silent_loss(tmp_path: Path) -> None:
    reader = tiny_reader()
    reader.tokenizer.chat_template = "{% for m in messages if m.role == 'user' %}<|user|>{{ m.content }}{% endfor %}"
    engine, _ = make(tmp_path, reader, "naive")
    with pytest.raises(UnsupportedModel, match="renders 1 of 2 messages"):
        engine.complete([Message("user", "Well?"), Message("assistant", TEXTS[0])], method="naive")
    engine.index.close()


def test_threads_read_prompts_as_one_thread_does(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, _ = ready
    matcher = PromptParser(engine.index)

    def ids(number: int) -> tuple[int, ...]:
        written = matcher.parse([Message("user", f"{number}: {TEXTS[number % 4]}\n\n<|end|> Well?")])
        return written.prompt([chunk.segment for chunk in written.chunks]).token_ids

    expected = [ids(number) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ids, range(40))) == expected


def test_a_follow_up_stands_behind_what_was_said(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    alone = engine.stream(QUESTION, chunks[:2], sampling=SHORT)
    system = engine.stream(QUESTION, chunks[:2], sampling=SHORT, history=[Message("system", SYSTEM)])
    assert system.prompt.token_ids == alone.prompt.token_ids
    assert torch.equal(system.logits, alone.logits)
    history = [Message("user", "Hello."), Message("assistant", "Hello!")]
    behind = engine.stream(QUESTION, chunks[:2], sampling=SHORT, history=history)
    assert [cache for _, cache in states(behind.report)] == ["hit", "hit"]
    notes = "".join(f"{chunk.text}\n\n" for chunk in chunks[:2])
    said = [Message("system", SYSTEM), *history, Message("user", f"{BEFORE_CHUNKS}{notes}{BEFORE_QUESTION}{QUESTION}")]
    assert torch.equal(behind.logits, engine.complete(said, sampling=SHORT).logits)
    assert behind.answer.question == QUESTION
    with pytest.raises(InvalidArgument, match="blank"):
        engine.stream(" ", chunks, history=history)


def test_a_comparison_is_made_of_a_conversation_too(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, chunks = ready
    history = [Message("user", "Hello."), Message("assistant", "Hello!")]
    answer = engine.answer(QUESTION, chunks[:2], recompute=1.0, history=history, sampling=SHORT, compare=True)
    assert answer.comparison is not None
    assert answer.comparison.same_answer


def test_neighbours_of_one_role_become_one_message(ready: tuple[Engine, list[Chunk]]) -> None:
    _, [chunk, *_] = ready
    turns = [Message("system", "a"), Message("user", "b"), Message("user", (chunk, "c")), Message("assistant", "d")]
    one, two, three = merge_messages(turns)
    assert (one, three) == (turns[0], turns[3])
    assert two.content == ("b", "\n\n", chunk, "c")
    assert two.text == f"b\n\n{chunk.text}c"


def test_chunks_that_were_printed_as_a_list_are_counted(ready: tuple[Engine, list[Chunk]]) -> None:
    engine, [chunk, *_] = ready
    lines = "One line of some length that is to be found again.\nAnd another 'line' behind it."
    engine.index.put("lines", "", [(lines, 0, len(lines))], {})
    printed = engine.complete(f"{[lines, chunk.text]}\n\n{QUESTION}", sampling=SHORT)
    assert [source for source, _ in states(printed.report)] == [chunk.source]
    assert printed.report.notes[0].startswith("1 chunks stand in the prompt escaped")
    assert not engine.complete(f"{lines}\n\nC:\\new\\table {QUESTION}", sampling=SHORT).report.notes
    engine.index.remove("lines")


@given(pieces=st.lists(st.sampled_from(["<chunk>", '<chunk id="1">', "</chunk>", "<chunk", " x>", "a", "\n", "<"])))
def test_marked_blocks_are_those_that_an_expression_finds(pieces: list[str]) -> None:
    text = "".join(pieces)
    blocks = re.finditer(r"<chunk(?:\s[^<>]*)?>(.*?)</chunk>", text, re.DOTALL)
    assert list(find_marked(text)) == [block.span(1) for block in blocks]


def test_marks_and_messages_without_end_take_no_time() -> None:
    began = time.process_time()
    assert list(find_marked("<chunk>" * 200_000)) == []
    [said] = merge_messages([Message("user", "a")] * 50_000)
    assert len(said.text) == 50_000 + 2 * 49_999
    decoded = SimpleNamespace(decode=lambda ids, skip_special_tokens: "a" * len(ids))
    assert list(pieces(iter(range(4)), decoded, ["b" * 1_000_000], [])) == ["a"] * 4
    assert time.process_time() - began < 5, "in time proportional to the square it would be minutes"
