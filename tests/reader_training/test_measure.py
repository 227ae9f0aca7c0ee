import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.metrics import exact_match
from ragcache_bench.reference_attention import View, answer, prompt_of
from ragcache_bench.tasks import TASKS, Example
from reader_training import measure

from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader

GREEDY = Sampling(max_new_tokens=40)


class Told:
    """A task whose accepted answer is what the reader says by full prefill."""

    needs = False

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        asked = [Example(f"{i}", "told", (f"Tide {i} is in Oslo.", "It is wet."), "Where?", (), ()) for i in range(n)]
        says = [answer(self.reader, prompt_of(self.reader, one), View(), GREEDY) for one in asked]
        return [replace(one, answers=(said,)) for one, said in zip(asked, says, strict=True)]


def test_each_mode_is_scored_with_its_interval_and_what_it_loses(reader: Reader) -> None:
    full, naive = measure.measure(reader, {"told": Told(reader)}, ["full", "naive"], 3, 0)  # type: ignore[dict-item]
    assert (full["score"], full["ci"], full["lost"]) == (1.0, (1.0, 1.0), 0.0)
    says = [(answer(reader, prompt_of(reader, one), View(alone=True), GREEDY), one) for one in Told(reader).examples(3)]
    assert naive["score"] == pytest.approx(sum(exact_match(said, one.answers) for said, one in says) / 3)
    assert naive["lost"] == pytest.approx(1 - naive["score"])
    assert naive["score"] < 1


def test_the_number_of_chunks_is_overridden_where_there_is_one() -> None:
    tasks = measure.chosen(None, 20)
    assert {len(example.chunks) for example in tasks["facts"].examples(3)} == {20}
    assert "sections" not in tasks
    assert measure.chosen(["sections"], None) == {"sections": TASKS["sections"]}
    with pytest.raises(InvalidArgument, match="'sections' has no number of chunks"):
        measure.chosen(["sections"], 20)


def test_the_command_prints_a_line_per_task_and_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model("llama").save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    options = ["--reader", str(tmp_path), "--task", "facts", "--chunks", "4", "-n", "1"]
    monkeypatch.setattr(sys, "argv", ["measure", *options])
    measure.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["task"], row["mode"], row["n"]) for row in rows] == [("facts", mode, 1) for mode in measure.MODES]
    assert set(rows[0]) == {"task", "mode", "n", "score", "ci", "lost", "lost_ci"}
