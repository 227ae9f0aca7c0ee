"""What each command prints, on a tiny random model with real documents, Chroma and embedder."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ragcache_cli.terminal import parse_size, say_json
from typer.testing import Result

from ragcache.errors import InvalidArgument
from ragcache.index.collection import Entry
from ragcache.rag import RagCache
from ragcache.report import make_printable

Run = Callable[..., Result]
FIELDS = set("answer question model method recompute chunks tokens charged charged_flops ms compare".split())


def asked(run: Run, index: Path, *more: object) -> Result:
    return run("ask", "Who leads the Tide project?", "--index", index, "--max-new-tokens", 4, *more)


def test_ask_prints_answer_sources_and_report_line(run: Run, index: Path) -> None:
    shown = asked(run, index, "--top-k", 2)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert "Sources" in lines
    assert [line.split()[-1].rpartition("/")[2] for line in lines if line.startswith("  1")] == ["tide.txt"]
    assert "2/2 chunks cached" in lines[-1]
    assert "first token" in lines[-1]


def test_a_source_whose_file_is_gone_is_said_to_be(run: Run, documents: Path, tmp_path: Path, checkpoint: Path) -> None:
    run("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint)
    assert "is gone" not in asked(run, tmp_path / "index").stderr
    (documents / "tide.txt").unlink()
    said = asked(run, tmp_path / "index").stderr
    assert re.search(r"tide.txt is gone; `ragcache documents remove PATH` forgets it", said)
    assert said.count("is gone") == 1


def test_a_source_that_may_not_be_looked_for_is_not_said_to_be_gone(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def refuse(path: str | Path, **how: bool) -> os.stat_result:
        if str(path).endswith("tide.txt"):
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **how)

    monkeypatch.setattr("os.stat", refuse)
    shown = asked(run, index)
    assert (shown.exit_code, "is gone" in shown.stderr) == (0, False)


def test_a_path_of_another_programs_chunk_is_no_file_of_ours(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    with RagCache.open(tmp_path / "other", model=str(checkpoint), method="naive") as rag:
        rag.collection("papers").add([Entry("1", "Mara Voss leads the Tide project.", "/nowhere/tide.pdf")])
    assert "is gone" not in asked(run, tmp_path / "other").stderr


def test_ask_as_json_has_every_field_and_nothing_else_on_stdout(run: Run, index: Path) -> None:
    answer = json.loads(asked(run, index, "--top-k", 2, "--json").stdout)
    assert set(answer) >= FIELDS
    assert {chunk["cache"] for chunk in answer["chunks"]} <= {"hit", "exact"}
    assert (answer["method"], answer["recompute"], answer["compare"]) == ("fusionrag", 0.15, None)


def test_an_infinite_number_is_null_in_json_which_has_no_word_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"kl": float("inf"), "worst": [(1.5, float("nan"))], "method": "naive"})
    said = capsys.readouterr().out
    assert json.loads(said, parse_constant=pytest.fail) == {"kl": None, "worst": [[1.5, None]], "method": "naive"}


def test_ask_streams_what_it_answers_in_one_piece(run: Run, index: Path) -> None:
    whole = json.loads(asked(run, index, "--json").stdout)["answer"]
    assert asked(run, index).stdout.partition("\n\nSources")[0].strip() == make_printable(whole, lines=True)


def test_ask_passes_method_and_share_on(run: Run, index: Path) -> None:
    answer = json.loads(asked(run, index, "--method", "fusionrag", "--recompute", 1, "--json").stdout)
    selectable = [chunk for chunk in answer["chunks"] if chunk["cache"] == "hit"]
    assert selectable
    assert all(chunk["recomputed"] == chunk["tokens"] for chunk in selectable)


def test_compare_measures_full_prefill(run: Run, index: Path) -> None:
    answer = json.loads(asked(run, index, "--method", "full", "--compare", "--json").stdout)
    assert answer["compare"]["same_answer"] is True
    assert answer["compare"]["full_prefill_first_token_ms"] > 0
    (line,) = [line for line in asked(run, index, "--compare").stdout.splitlines() if "chunks cached" in line]
    assert "full prefill" in line


def test_explain_gives_each_chunk_a_row(run: Run, index: Path) -> None:
    shown = asked(run, index, "--method", "naive", "--explain").stdout
    rows = [line for line in shown.splitlines() if " hit " in line]
    assert len(rows) == 3
    assert all("alone" in row and "nothing" in row for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "nonesuch"], "ragcache methods"),
        (["--method", "epic", "--recompute", "1.5"], "between 0 and 1"),
        (["--method", "naive", "--recompute", "0.5"], "fixed cost"),
        (["--method", "link0"], "ragcache ingest --method link0"),
        (["--top-k", "0"], "at least one"),
        (["--max-new-tokens", "0"], "at least 1"),
        (["--max-new-tokens", "5000"], "2,048"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_asked_is_refused_with_the_reason(
    run: Run, index: Path, arguments: list[str], words: str
) -> None:
    refused = run("ask", "Who?", "--index", index, *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert words in refused.stderr


def test_a_blank_question_is_refused(run: Run, index: Path) -> None:
    assert run("ask", "  ", "--index", index).exit_code == 2


def test_ingesting_again_does_nothing_and_says_so(run: Run, index: Path, checkpoint: Path) -> None:
    report = json.loads(run("ingest", index.parent / "documents", "--index", index, "--json").stdout)
    assert (report["added"], report["unchanged"], report["encoded"]) == (0, 3, {})
    assert report["model"] == str(checkpoint)


def test_one_unreadable_document_does_not_stop_the_rest(
    run: Run, tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    (documents / "empty.txt").write_text("")
    (documents / "picture.png").write_bytes(b"\x89PNG")
    done = run("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint)
    assert done.exit_code == 0
    assert "3 added" in done.stdout
    assert "empty.txt can't be read" in done.stderr
    assert "picture.png" in done.stderr


def test_nothing_readable_is_an_error(run: Run, tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    refused = run("ingest", tmp_path / "empty.txt", "--index", tmp_path / "index", "--model", checkpoint)
    assert refused.exit_code == 2
    assert "empty" in refused.stderr


@pytest.mark.parametrize("name", ["picture.png", "nothing-there"])
def test_a_path_that_no_reader_takes_is_an_error(run: Run, tmp_path: Path, checkpoint: Path, name: str) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    refused = run("ingest", tmp_path / name, "--index", tmp_path / "index", "--model", checkpoint)
    assert refused.exit_code == 2
    assert name in refused.stderr


def test_a_fused_encoding_says_its_price_before_it_starts(
    run: Run, tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    shown = run("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--method", "fusionrag")
    assert "3 chunks are to be encoded, then once more behind other chunks: about" in shown.stderr
    again = run("ingest", documents, "--index", tmp_path / "index")
    assert "behind other chunks" not in again.stderr, "nothing is left to encode"


def test_the_first_method_of_a_new_index_is_its_own(
    run: Run, tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    at = ["--index", tmp_path / "index"]
    run("ingest", documents, *at, "--model", checkpoint, "--method", "naive", "--method", "epic")
    assert json.loads(run("store", "stats", *at, "--json").stdout)["method"] == "naive"


def test_a_dry_run_prices_and_writes_nothing(run: Run, tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    line = ("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--dry-run", "--json")
    assert json.loads(run(*line).stdout)["bytes"] > 0
    shown = run(*line, "--method", "fusionrag")
    plan = json.loads(shown.stdout)
    assert (plan["documents"], plan["chunks"]) == (3, 3)
    assert plan["bytes"] == 2 * plan["tokens"] * plan["bytes_per_token"], "the base encoding and fused"
    assert not (tmp_path / "index").exists()


def test_a_limit_that_is_refused_leaves_no_index(run: Run, documents: Path, checkpoint: Path, tmp_path: Path) -> None:
    where = ("--index", tmp_path / "new", "--model", checkpoint)
    refused = run("ingest", documents, *where, "--max-size", "0")
    assert (refused.exit_code, "one byte or more, not to 0" in refused.stderr) == (2, True)
    assert not (tmp_path / "new").exists()


def test_an_answer_that_is_too_long_is_told_how_long_it_may_be(run: Run, index: Path) -> None:
    refused = run("ask", "When was the bridge built?", "--index", index, "--max-new-tokens", 99_999_999)
    assert refused.exit_code == 2
    [(prompt, most)] = re.findall(r"prompt has ([\d,]+) tokens .* takes ([\d,]+); let the answer", refused.stderr)
    left = int(most.replace(",", "")) - int(prompt.replace(",", ""))
    assert f"let the answer take {left:,} at most (--max-new-tokens" in refused.stderr
    asked = run("ask", "When was the bridge built?", "--index", index, "--max-new-tokens", left, "--json")
    assert asked.exit_code == 0


def test_a_dry_run_names_what_would_go(run: Run, tmp_path: Path, documents: Path, checkpoint: Path) -> None:
    at = ("--index", tmp_path / "index", "--dry-run", "--json")
    run("ingest", documents, "--index", tmp_path / "index", "--model", checkpoint)
    (documents / "tide.txt").unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "new.txt").write_text("The mill grinds oats.")
    plans = [
        json.loads(run("ingest", *paths, *at).stdout) for paths in ((documents,), (elsewhere,), (elsewhere, "--prune"))
    ]
    assert [[Path(file).name for file in plan["forgotten"]] for plan in plans] == [["tide.txt"], [], ["tide.txt"]]
    shutil.rmtree(documents)
    whole = run("ingest", documents, "--index", tmp_path / "index", "--dry-run")
    assert (whole.exit_code, "would be removed, since they are gone" in whole.stderr) == (0, True)
    assert json.loads(run("ingest", documents, *at).stdout)["documents"] == 0


def test_a_dry_run_on_an_index_leaves_it_alone(run: Run, index: Path) -> None:
    before = json.loads(run("store", "stats", "--index", index, "--json").stdout)
    assert run("ingest", index.parent / "documents", "--index", index, "--method", "link0", "--dry-run").exit_code == 0
    after = json.loads(run("store", "stats", "--index", index, "--json").stdout)
    assert {**before, "free_bytes": 0} == {**after, "free_bytes": 0}


def test_store_stats_counts_what_there_is(run: Run, index: Path) -> None:
    found = json.loads(run("store", "stats", "--index", index, "--json").stdout)
    assert (found["documents"], found["chunks"]) == (3, 3)
    assert {name: row["chunks"] for name, row in found["encodings"].items()} == {
        "alone": 3, "prefixed": 3, "fused(neighbours=10)": 3
    }  # fmt: skip
    shown = run("store", "stats", "--index", index).stdout
    assert "fused(neighbours=10)" in shown
    assert "MiB" in shown or "KiB" in shown


def test_methods_lists_every_row_with_its_choices(run: Run) -> None:
    from ragcache.methods import METHODS

    rows = {row["name"]: row for row in json.loads(run("methods", "--json").stdout)}
    assert set(rows) >= set(METHODS)
    assert rows["fusionrag"]["encode"] == "Fused(neighbours=10, by='similarity')"
    shown = run("methods").stdout
    assert all(name in shown and row["about"] in " ".join(shown.split()) for name, row in rows.items())


def test_ingest_measures_once_how_long_a_context_must_be(
    run: Run, documents: Path, tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragcache.engine import calibrate

    ratios = iter([1.5, 1.5, 0.9])
    monkeypatch.setattr(calibrate, "_ratio", lambda *args: next(ratios))
    arguments = ["ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--json"]
    assert json.loads(run(*arguments).stdout)["break_even_tokens"] is None
    found = json.loads(run(*arguments, "--calibrate").stdout)["break_even_tokens"]
    assert found > 0
    assert json.loads(run(*arguments, "--calibrate").stdout)["break_even_tokens"] == found  # not measured again
    assert json.loads(run(*arguments).stdout)["break_even_tokens"] == found
    answer = json.loads(run("ask", "Who leads it?", "--index", tmp_path / "index", "--top-k", 1, "--json").stdout)
    assert answer["method"] == "full"
    assert str(found) in answer["notes"][0]


def test_what_lost_at_every_length_is_measured_again_only_over_longer_contexts(
    run: Run, documents: Path, tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragcache.engine import calibrate

    timed: list[int] = []
    monkeypatch.setattr(calibrate, "_ratio", lambda engine, chunks, repeats: timed.append(len(chunks)) or 1.5)
    arguments = ["ingest", documents, "--index", tmp_path / "index", "--model", checkpoint, "--calibrate"]
    for _ in range(2):
        assert run(*arguments).exit_code == 0
    assert timed == [1, 2, 3]
    (documents / "long.txt").write_text("The ferry leaves at noon, and nobody knows why it is never late. " * 9)
    assert run(*arguments).exit_code == 0
    assert len(timed) > 3


def advised(text: str) -> list[str]:
    """The words of the command that a message says to run."""
    (line,) = re.findall(r"run `ragcache ([^`]+)`", " ".join(text.split()))
    return shlex.split(line)


def test_another_method_s_error_names_a_command_that_works_as_it_stands(
    run: Run, tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    at = ["--index", tmp_path / "an index"]
    run("ingest", documents, *at, "--model", checkpoint)
    asked_link0 = ("ask", "Who leads it?", *at, "--method", "link0", "--max-new-tokens", 2)
    refused = run(*asked_link0)
    assert refused.exit_code == 2
    command = advised(refused.stderr)
    assert "PATH" not in " ".join(command)
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert "3 unchanged" in done.stdout
    assert "3 sink(tokens=4)" in done.stdout
    assert run(*asked_link0).exit_code == 0


def test_an_index_without_documents_or_none_at_all_says_what_to_ingest(
    run: Run, tmp_path: Path, documents: Path, checkpoint: Path
) -> None:
    nowhere = run("ingest", "--index", tmp_path / "index", "--method", "link0")
    assert nowhere.exit_code == 2
    assert advised(nowhere.stderr) == ["ingest", "PATH…", "--index", str(tmp_path / "index")]
    assert not (tmp_path / "index").exists()
    with RagCache.open(tmp_path / "index", model=str(checkpoint)):
        pass
    empty = run("ingest", "--index", tmp_path / "index", "--method", "link0")
    assert empty.exit_code == 2
    assert "is empty" in empty.stderr
    for option, *value in (("--chunk-tokens", 30), ("--titles", "both"), ("--exclude", "*.md"), ("--no-ignore",)):
        wrong = run("ingest", "--index", tmp_path / "index", option, *value)
        assert wrong.exit_code == 2
        assert re.search(rf"{option} .*; name their PATH too", " ".join(wrong.stderr.split()))


def test_titles_are_put_where_the_command_line_says(run: Run, tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "fees.txt").write_text("It costs 40 crowns a day.", encoding="utf-8")
    line = ["ingest", tmp_path / "fees.txt", "--index", tmp_path / "index", "--model", checkpoint]
    wrong = run(*line, "--titles", "top")
    assert (wrong.exit_code, (tmp_path / "index").exists()) == (2, False)
    assert "choose one of none, text, embedding, both" in " ".join(wrong.stderr.split())
    assert run(*line, "--titles", "both").exit_code == 0
    with RagCache.open(tmp_path / "index") as rag:
        assert [text for _, text in rag.index.catalog.texts()] == ["fees\nIt costs 40 crowns a day."]


def test_what_another_method_would_cost_is_priced_without_paths(run: Run, index: Path) -> None:
    plan = json.loads(run("ingest", "--index", index, "--method", "link0", "--dry-run", "--json").stdout)
    assert (plan["documents"], plan["chunks"]) == (3, 3)
    assert plan["bytes"] > 0


def test_an_index_may_write_smaller_kv_and_remembers_it(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The tide turns at noon. " * 12)
    index = tmp_path / "index"
    done = run("ingest", tmp_path / "note.txt", "--index", index, "--model", checkpoint, "--kv", "k8v4")
    assert done.exit_code == 0, done.output
    found = json.loads(run("store", "stats", "--index", index, "--json").stdout)
    assert found["kv"] == "k8v4"
    assert found["codecs"]["raw"] > found["codecs"]["bf16"] > found["codecs"]["int8"] > found["codecs"]["k8v4"]
    assert found["codecs"]["k8v4"] == found["bytes"]
    shown = run("store", "stats", "--index", index).stdout
    assert "k8v4 (this index)" in shown
    assert "4-bit values" in shown
    again = run("ingest", tmp_path / "note.txt", "--index", index, "--kv", "int8")
    assert again.exit_code == 2
    assert "written as k8v4, not as int8" in again.stderr
    assert run("ingest", tmp_path / "note.txt", "--index", index).exit_code == 0
    assert run("ask", "When does the tide turn?", "--index", index, "--json").exit_code == 0
    wrong = run("ingest", tmp_path / "note.txt", "--index", index, "--kv", "zip")
    assert "choose one of raw, bf16, int8, k8v4" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1.5 GiB", 3 << 29), ("4096", 4096), ("2k", 2000), ("1kib", 1024)]
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "1i", "5XB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is no size"):
        parse_size(text)


def test_an_index_may_be_limited_and_says_what_does_not_fit(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"note{number}.txt").write_text(f"Note {number}. " + "The tide turns at noon. " * 12)
    how = ("--index", tmp_path / "index", "--model", checkpoint, "--max-size", "1MB")
    done = run("ingest", *sorted(tmp_path.glob("*.txt")), *how, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert any("do not fit into the 1.0 MiB" in note for note in found["notes"])
    assert sum(file.stat().st_size for file in (tmp_path / "index" / "kv").rglob("*.safetensors")) <= 1_000_000
    said = json.loads(run("ask", "When does the tide turn?", "--index", tmp_path / "index", "--json").stdout)
    assert said["sources"]
