"""A prompt that matches no chunk says why; one that has a chunk's beginning reuses that much of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from conftest import tiny_reader

from ragcache.engine.chunk_matcher import PREFIX_CHARS
from ragcache.engine.closest import Closest, explained
from ragcache.engine.engine import Engine
from ragcache.engine.prompt_parser import PromptParser
from ragcache.index.collection import Entry
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.prompt import Prompt
from ragcache.rag import RagCache

READER = tiny_reader()
SHORT = Sampling(max_new_tokens=2)
ASK = "\n\nWhat does the mill grind?"
MILL = (
    "The mill grinds rye on Mondays.\nIt grinds wheat on Thursdays, when the river is high enough.\n"
    "Nobody has seen it grind barley since the great flood."
)
LONG = "The ferry crosses the sound every hour, and carries forty cars. Dogs ride on deck, cats stay at home."
TINY = "Ask the miller."


@pytest.fixture(scope="module")
def rag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagCache]:
    with RagCache.open(tmp_path_factory.mktemp("missed") / "index", model=READER) as rag:
        texts = {"mill.txt": MILL, "ferry.txt": LONG, "tiny.txt": TINY}
        rag.collection("notes").add([Entry.of(name, text, {"source": name}) for name, text in texts.items()])
        yield rag


def told(rag: RagCache, prompt: str) -> tuple[list[str], tuple[str, ...]]:
    report = rag.engine.complete(prompt, sampling=SHORT).report
    return [chunk.cache for chunk in report.chunks], report.notes


def bulleted(text: str, mark: str) -> str:
    return "\n".join(f"{mark}{line}" for line in text.splitlines())


@pytest.mark.parametrize(
    ("altered", "share", "why"),
    [
        (bulleted(MILL, "- "), "100%", "bullets"),
        (bulleted(MILL, "> "), "100%", "quotation marks"),
        (bulleted(MILL, "    "), "100%", "white space is different"),
        (" ".join(MILL.split()), "100%", "white space is different"),
        (MILL.replace("\n", "\r\n"), "100%", "white space is different"),
        (MILL[:40], "26%", "cut short behind its first 7 words"),
        (MILL[40:], "7", "its beginning is missing"),
        (MILL.replace("Thursdays", "Sundays").replace("mill", "old mill"), "", "some of its words are others"),
        (f"He said: {TINY}", "100%", f"fewer than {PREFIX_CHARS} characters"),
    ],
    ids=["bullets", "quoted", "indented", "one line", "line ends", "truncated", "tail", "reworded", "short"],
)
def test_the_likely_reason_is_named(rag: RagCache, altered: str, share: str, why: str) -> None:
    chunks, [note] = told(rag, f"Context:\n{altered}{ASK}")
    assert chunks == []
    assert note.startswith("no chunk was reused: ")
    if share != "26%":  # too little of it to be sure
        assert f"of {'tiny' if 'short' in why or 'fewer' in why else 'mill'}.txt, has {share}" in note
        assert why in note
    else:
        assert "none of the 3 in the index" in note


def test_a_prompt_that_has_nothing_of_any_chunk_says_so(rag: RagCache) -> None:
    assert told(rag, "Hello.") == (
        [], ("no chunk was reused: none of the 3 in the index stands in the prompt, nor one like it",)
    )  # fmt: skip


def test_an_empty_index_says_what_fills_it(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        [note] = told(rag, MILL + ASK)[1]
        assert "the index holds none yet; `ragcache ingest`, `ragcache adopt`" in note


def test_chunks_that_were_handed_over_but_never_added_say_so_too(rag: RagCache) -> None:
    altered = bulleted(MILL, "- ")
    report = rag.engine.answer("What does it grind?", [altered], sampling=SHORT).report
    assert [chunk.cache for chunk in report.chunks] == ["miss"]
    assert "bullets" in report.notes[0]
    [note] = rag.engine.answer("What does it carry?", [LONG], sampling=SHORT).report.notes
    assert "Engine.chunk(text) gives the index's own chunk" in note
    known = [rag.engine.chunk(LONG)]
    assert rag.engine.answer("What does it carry?", known, sampling=SHORT).report.notes == ()
    assert rag.engine.answer("What does it carry?", [*known, altered], sampling=SHORT).report.notes == ()


def test_where_a_chunk_is_found_nothing_is_said_of_others(rag: RagCache) -> None:
    chunks, notes = told(rag, f"{LONG}\n\n{bulleted(MILL, '- ')}{ASK}")
    assert (len(chunks), notes) == (1, ())


def test_frameworks_hand_the_note_on(rag: RagCache) -> None:
    langchain, llama_index = (pytest.importorskip(f"{name}_ragcache") for name in ("langchain", "llama_index"))
    prompt = f"{bulleted(MILL, '* ')}{ASK}"
    said = langchain.ChatRagCache(rag, max_tokens=1).invoke(prompt).response_metadata["ragcache"]["notes"]
    [[one]] = langchain.RagCacheLLM(rag, max_tokens=1).generate([prompt]).generations
    made = llama_index.RagCacheLLM(rag, max_tokens=1).complete(prompt).additional_kwargs["ragcache"]["notes"]
    handed = langchain.ChatRagCache(rag, max_tokens=1).invoke("What?", documents=[bulleted(MILL, "* ")])
    for notes in (said, one.generation_info["ragcache"]["notes"], made, handed.response_metadata["ragcache"]["notes"]):
        assert "bullets" in notes[0]


# -- what begins as a chunk does


def read(engine: Engine, text: str) -> Prompt:
    written = PromptParser(engine.index).parse(text)
    return written.prompt([chunk.segment for chunk in written.chunks])


@pytest.mark.parametrize("name", ["naive", "prophetkv", "cacheblend", "fusionrag", "auto"])
def test_a_chunk_that_is_cut_short_is_reused_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    with RagCache.open(tmp_path / "index", model=READER, method=name) as rag:
        texts = {"mill.txt": MILL, "ferry.txt": LONG}
        rag.collection("notes").add([Entry.of(name, text, {"source": name}) for name, text in texts.items()])
        prompt = f"Notes: {LONG}\n\n{MILL[:-30]}...{ASK}"
        report = rag.engine.complete(prompt, sampling=SHORT).report
        assert [chunk.cache for chunk in report.chunks] == ["hit", "hit"]
        there = len(MILL[:-30].rsplit(" ", 1)[0]) + 1  # whole words, and the space behind them; bytes are tokens here
        assert report.chunks[1].tokens == there
        [note] = report.notes
        assert note.startswith(f"1 chunks stand in the prompt without their ends: {there} of their {len(MILL) + 2}")
        ids = rag.reader.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        assert list(read(rag.engine, prompt).token_ids) == ids
        if METHODS[name].recompute is not None:
            whole = rag.engine.complete(prompt, recompute=1.0, sampling=SHORT)
            stock, _ = rag.reader.stock(ids)
            torch.testing.assert_close(whole.logits, stock, atol=1e-4, rtol=1e-4)


def test_a_layout_that_moves_a_cut_chunk_does_not_make_it_whole(rag: RagCache) -> None:
    prompt = f"{MILL[:-30]}\n\n{LONG}{ASK}"
    written = PromptParser(rag.index).parse(prompt)
    mill, ferry = (chunk.segment for chunk in written.chunks)
    there = written.prompt([ferry, mill])
    words = rag.reader.tokenizer.decode([token for segment in there.segments for token in segment.token_ids])
    assert "great flood" not in words
    assert len([segment for segment in there.segments if segment.chunk]) == 2


def test_less_than_half_of_a_chunk_or_another_text_of_the_same_beginning_is_not_taken_for_it(rag: RagCache) -> None:
    for text in (
        MILL[: PREFIX_CHARS + 8],
        LONG[: PREFIX_CHARS + 1] + " nothing else is known of it, and nobody asks " * 3,
    ):
        chunks, notes = told(rag, text + ASK)
        assert chunks == []
        assert notes


def test_the_longest_of_those_that_begin_alike_is_taken(tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "index", model=READER) as rag:
        other = LONG.replace("Dogs ride on deck", "Birds fly")
        rag.collection("notes").add([Entry.of(name, name, {"source": name}) for name in (other, LONG)])
        report = rag.engine.complete(LONG[:-12] + ASK, sampling=SHORT).report
        assert [chunk.source for chunk in report.chunks] == [LONG]


# -- the closest


def test_the_closest_chunk_is_found_among_many() -> None:
    said = "Report {0} of the harbour: {1} boats came in, and {2} left for the north."
    chunks = [(str(n), said.format(n, 7 * n, 3 * n)) for n in range(500)]
    closest = Closest([*chunks, ("mill", MILL)])
    assert closest.find(bulleted(MILL, "1. ")) == "mill"
    assert closest.find("* Report 77 of the harbour:\n* 539 boats came in,\n* and 231 left") == "77"
    assert closest.find("nothing of the kind") is None
    assert Closest([]).find(MILL) is None
    assert explained("one two three four", "one two three") == (0.75, "it is cut short behind its first 3 words")
