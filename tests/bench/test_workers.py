import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.util import Finalize
from pathlib import Path

import pytest
from conftest import byte_tokenizer, tiny_model
from ragcache_bench.asking import Asked, Job
from ragcache_bench.contenders import Contender, contenders
from ragcache_bench.records import Journal, Record
from ragcache_bench.runs import Bench
from ragcache_bench.tasks import Example
from ragcache_bench.workers import Workers, share_out

from ragcache.errors import PromptTooLong, WorkerDied
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> "partial[Reader]":
    folder = tmp_path_factory.mktemp("llama")
    tiny_model("llama").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return partial(Reader.load, str(folder))


@pytest.fixture(scope="module", autouse=True)
def temporary() -> Iterator[Path]:
    """A folder for temporary files; processes speak through sockets there, whose paths must be short."""
    folder = tempfile.mkdtemp(prefix="rc")
    # One of the processes outlives these tests, and so does the folder that they share in it.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


def asked(task: str, count: int, words: int = 3) -> list[Example]:
    texts = [(f"Project {i} is in Oslo.", "word " * words) for i in range(count)]
    return [Example(f"{task}-{i}", task, texts[i], "Where is it?", ("Oslo",), (0,)) for i in range(count)]


def untimed(records: Sequence[Record]) -> list[dict[str, object]]:
    return [{**vars(record), "ttft_ms": None, "session": "", "kl": round(record.kl or 0, 4)} for record in records]


@pytest.mark.slow
def test_two_processes_answer_as_one_does_and_leave_nothing_behind(
    load: "partial[Reader]", tmp_path: Path, temporary: Path
) -> None:
    tasks = {"a": asked("a", 4), "b": asked("b", 2), "c": asked("c", 1)}
    field = contenders([], (0.3,), controls=("full", "naive", "random"))
    steps: list[tuple[str, int, int]] = []
    one = Bench(load(), Journal(tmp_path / "one.jsonl"), Sampling(max_new_tokens=2))
    two = replace(one, journal=Journal(tmp_path / "two.jsonl"))
    several = replace(two, workers=Workers(load, 2), progress=lambda *step: steps.append(step))
    together = several.answers(tasks, field)
    alone = one.answers(tasks, field)
    assert untimed(together) == untimed(alone)
    assert [step for step in steps if step[0] == "questions"] == [("questions", n, 7) for n in range(8)]
    assert {stage for stage, *_ in steps} >= {"a: encode alone", "b: answer", "c: index"}
    assert not list(temporary.glob("ragcache-*"))
    assert replace(two, journal=Journal(tmp_path / "two.jsonl")).answers(tasks, field) == together


def test_a_task_that_is_more_than_its_share_is_divided() -> None:
    def job(task: str, count: int) -> Job:
        pool = tuple(asked(task, count))
        return Job(
            task, pool, tuple(Asked(one, (("key", Contender(find_method("naive"))),)) for one in pool), Sampling()
        )

    long, short, empty = job("a", 9), job("b", 3), job("c", 0)
    shared = share_out([long, short, empty], 2)
    assert [(one.task, len(one.questions), len(one.pool)) for one in shared] == [
        ("a", 5, 9), ("a", 4, 9), ("b", 3, 3), ("c", 0, 0),
    ]  # fmt: skip
    assert {asked.example for one in shared[:2] for asked in one.questions} == set(long.pool)
    assert share_out([long, short], 1) == [long, short]
    assert share_out([empty], 2) == [empty]


def dying() -> Reader:
    os._exit(7)


def test_a_process_that_dies_is_one_error_with_the_way_on(load: "partial[Reader]", tmp_path: Path) -> None:
    field = contenders([], (), controls=("full",))
    with pytest.raises(WorkerDied, match=r"exit code 7 .*'a'.*resume"):
        Bench(load(), Journal(tmp_path / "x.jsonl"), workers=Workers(dying, 1)).answers({"a": asked("a", 1)}, field)


def test_what_a_worker_refuses_is_refused_here(load: "partial[Reader]", tmp_path: Path) -> None:
    field, tasks = contenders([], (), controls=("full",)), {"a": asked("a", 1, words=900)}
    with pytest.raises(PromptTooLong, match="2,048"):
        Bench(load(), Journal(tmp_path / "x.jsonl"), workers=Workers(load, 1)).answers(tasks, field)
