"""Texts that are no document's: prefilled at first and second sight, loaded from then on, if that is asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from staged import QUESTION

from ragcache import RagCache
from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.index.second_sight import SecondSight
from ragcache.methods import METHODS
from ragcache.model.buffer import ChunkKV
from ragcache.model.reader import Reader

ROOM = 1 << 20
TEXT, OTHER = "The mill by the weir grinds rye on Mondays.", "Nobody has seen the ferry since the flood."


def states(engine: Engine, texts: Sequence[str], method: str = "naive") -> list[str]:
    return [chunk.cache for chunk in engine.prefill(QUESTION, texts, method=method).report.chunks]


def kv(tokens: Sequence[int]) -> ChunkKV:
    return ChunkKV((torch.zeros(2, 1, len(tokens), 4),), 0, tuple(tokens), {})


@pytest.mark.parametrize("method", ["naive", "prophetkv", "fusionrag", "auto"])
def test_a_text_is_loaded_from_its_third_prompt_on_and_its_report_says_so(
    method: str, tmp_path: Path, reader: Reader
) -> None:
    with Index(tmp_path, reader, second_sight_bytes=ROOM) as index:
        engine = Engine(reader, index)
        found = [engine.prefill(QUESTION, texts, method=method) for texts in ([TEXT], [TEXT, OTHER], [OTHER, TEXT])]
        first, second, third = (one.report.chunks for one in found)
        assert [first[0].cache, second[0].cache, second[1].cache, third[0].cache] == ["miss"] * 4
        assert third[1].cache == "hit"
        assert "kept since its second prompt" in third[1].reason
        assert not index.catalog.all_chunks(), "nothing of it is written"


def test_what_is_loaded_answers_as_what_was_made(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path / "a", reader, second_sight_bytes=ROOM) as index, Index(tmp_path / "b", reader) as plain:
        kept, made = Engine(reader, index), Engine(reader, plain)
        for texts in ([TEXT, OTHER], [OTHER, TEXT], [TEXT, OTHER]):
            ours = kept.prefill(QUESTION, texts, method="naive")
            torch.testing.assert_close(ours.logits, made.prefill(QUESTION, texts, method="naive").logits)
        assert states(kept, [OTHER, TEXT]) == ["hit", "hit"]
        assert states(made, [OTHER, TEXT]) == ["miss", "miss"], "off unless it is asked for"


def test_behind_the_system_prefix_it_is_exact(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path, reader, second_sight_bytes=ROOM) as index:
        engine = Engine(reader, index)
        found = [states(engine, [TEXT], "ape") for _ in range(3)]
        assert found == [["miss"], ["miss"], ["exact"]]
        assert states(engine, [OTHER, TEXT], "ape") == ["miss", "hit"]
        index.release()
        assert states(engine, [TEXT], "ape") == ["miss"]


def test_a_limit_lets_go_of_what_was_used_longest_ago() -> None:
    size = kv([1, 2]).nbytes
    kept = SecondSight(2 * size)
    for text in "aabbacc":
        kept.note(text, "alone", kv([1, 2]), ())
        kept.find("a", "alone", [1, 2])
    assert [kept.find(text, "alone", [1, 2]) is not None for text in "abc"] == [True, False, True]
    assert kept.nbytes == 2 * size
    kept.note("d", "alone", kv(range(9)), ())
    kept.note("d", "alone", kv(range(9)), ())
    assert kept.find("d", "alone", range(9)) is None, "larger than the limit"
    assert kept.nbytes == 2 * size, "and drives out no other"


def test_only_the_same_tokens_by_the_same_recipe_are_found() -> None:
    kept = SecondSight(ROOM)
    for _ in range(2):
        kept.note("a", "alone", kv([1, 2]), ("x",))
    assert kept.find("a", "alone", [1, 2]) is not None
    assert kept.find("a", "alone", [1, 3]) is None
    assert kept.find("a", "sink", [1, 2]) is None


def test_a_negative_limit_is_refused(tmp_path: Path, readers: Callable[[str], Reader]) -> None:
    with pytest.raises(InvalidArgument, match="second_sight_bytes is -1"):
        RagCache.open(tmp_path / "index", model=readers("llama"), second_sight_bytes=-1)


def test_the_note_of_texts_that_were_seen_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcache.index.second_sight._NOTED", 5)
    sight = SecondSight(ROOM)
    for number in range(20):
        sight.keep(f"kept {number}", "alone", kv([1]), (), "")
        sight.note(f"noted {number}", "alone", kv([1]), ())
    assert len(sight._seen) == 5


def test_nothing_of_it_outlives_a_document_that_may_have_had_the_text(tmp_path: Path, reader: Reader) -> None:
    with Index(tmp_path, reader, second_sight_bytes=ROOM) as index, Index(tmp_path, reader) as other:
        index.put("mill.txt", "", [(OTHER, 0, len(OTHER))], {})
        index.learn(TEXT, METHODS["naive"].encode or Alone())
        assert [text for _, text in index.second_sight.texts()] == [TEXT]
        other.remove("mill.txt")  # as another process would
        assert index.second_sight.texts() == []
        assert index.second_sight.nbytes == 0
