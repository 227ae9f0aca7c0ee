"""Questions that do not fit the model are counted before anything runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import tiny_reader, tune
from ragcache_bench.contenders import contenders
from ragcache_bench.lengths import check_lengths
from ragcache_bench.tasks import Example

from ragcache.engine.engine import Engine
from ragcache.errors import PromptTooLong
from ragcache.index.index import Index
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

PLAIN = contenders(["naive"], (0.3,), controls=("full",))
ONE = Sampling(max_new_tokens=1)


def asked(name: str, *lengths: int, titles: tuple[str, ...] = ()) -> list[Example]:
    """Questions of one chunk each, so many letters long."""
    return [
        Example(f"{name}-{n}", name, ("x" * length,), "Who?", ("Ada",), (), titles=titles)
        for n, length in enumerate(lengths)
    ]


@pytest.fixture
def room(reader: Reader, tmp_path: Path) -> int:
    """Letters of the longest chunk that the engine itself takes."""
    with Index(tmp_path / "index", reader) as index:
        empty = len(index.template.prompt([index.uncached_chunk("x").segment], "Who?"))
        most = reader.limit - empty
        Engine(reader, index).prefill("Who?", ["x" * most], method="full")
        with pytest.raises(PromptTooLong):
            Engine(reader, index).prefill("Who?", ["x" * (most + 1)], method="full")
    return most


def test_what_the_engine_takes_passes_and_a_token_more_is_counted_by_set(reader: Reader, room: int) -> None:
    check_lengths({"xquad": asked("xquad", room, 3)}, PLAIN, reader, ONE)
    sets = {
        "xquad": asked("xquad", room, room + 1, room + 9),
        "locomo": asked("locomo", room + 2),
        "babi-1": asked("b", 1),
    }
    says = (
        f"2 of 3 questions of xquad, 1 of 1 questions of locomo do not fit {reader.name}, which takes {reader.limit:,} "
        f"tokens with the 1 of --max-new-tokens: the longest, xquad-2, has {reader.limit + 8:,} in 1 chunks; give each "
        "question fewer chunks with --chunks N"
    )
    with pytest.raises(PromptTooLong, match=f"^{re.escape(says)}$"):
        check_lengths(sets, PLAIN, reader, ONE)


def test_the_longest_answer_a_title_line_and_link_tokens_count(room: int, reader: Reader) -> None:
    with pytest.raises(PromptTooLong):
        check_lengths({"xquad": asked("xquad", room)}, PLAIN, reader, Sampling(max_new_tokens=2))
    titled = {"xquad": asked("xquad", room, titles=("Tide",))}
    check_lengths(titled, PLAIN, reader, ONE)
    with pytest.raises(PromptTooLong):
        check_lengths(titled, contenders([], (), controls=("full", "full+title")), reader, ONE)


def test_link_tokens_count_where_a_row_reads_them(room: int) -> None:
    tuned = tune(tiny_reader(), "kvlink", links=2)
    check_lengths({"xquad": asked("xquad", room)}, PLAIN, tuned, ONE)
    with pytest.raises(PromptTooLong, match=f"has {tuned.limit + 1:,} in 1 chunks"):
        check_lengths({"xquad": asked("xquad", room)}, contenders(["kvlink"], (), controls=()), tuned, ONE)


def test_of_generated_tasks_the_option_is_named_that_leaves_them_out(reader: Reader, room: int) -> None:
    both = {name: [replace(one, task=name) for one in asked(name, room + 1)] for name in ("facts", "xquad")}
    with pytest.raises(PromptTooLong, match=r"with --chunks N, and leave facts out of --tasks$"):
        check_lengths(both, PLAIN, reader, ONE)
    with pytest.raises(PromptTooLong, match=r"chunks; leave facts out of --tasks$"):
        check_lengths({"facts": both["facts"]}, PLAIN, reader, ONE)
