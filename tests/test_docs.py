"""The code in docs/ runs, and its links lead somewhere."""

import json
import re
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import byte_tokenizer, tiny_model, write_adapter
from figures import short
from staged import QUESTION, TEXTS, make

from ragcache.engine.answer import Answer
from ragcache.engine.chat import Message
from ragcache.index.settings import settings_of
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.retrieve.discover import DEFAULT_EXCLUDES, IGNORE_FILES
from ragcache.retrieve.formats import SUPPORTED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "ragcache").rglob("*.md"))]


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)


def test_every_source_file_that_a_page_names_is_there() -> None:
    known = [path.as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    for page in PAGES:
        for name in re.findall(r"`([a-z_][\w/]*\.py)`", page.read_text()):
            assert name == "last_tokens.py" or any(path.endswith(f"/{name}") for path in known), f"{page}: {name}"


def test_what_is_said_of_a_gpu_is_what_was_found() -> None:
    page = " ".join((DOCS / "benchmarks" / "speed.md").read_text().split())
    checked = json.loads((DOCS / "benchmarks" / "gpu-check-h100.json").read_text())["parts"]
    rows = [(name, row) for name, part in checked.items() for row in part["rows"]]
    assert rows
    assert all(row["passed"] for _, row in rows)
    worst = max(row.get("difference", 0) for name, row in rows if "bfloat16" not in name and "bf16" not in name)
    assert f"in fp32 is {worst:.1e}".replace("e-0", "e-") in page
    timed = json.loads((DOCS / "benchmarks" / "gpu-check-h200.json").read_text())["parts"]
    full, naive, blend, fusion = timed["latency, qwen2.5-0.5b, 4,096 tokens, KV in memory"]["rows"]
    assert f"4,096 tokens in {full['ttft_ms']:.0f} ms" in page
    loses = f"takes {naive['ttft_ms']:.0f} ms, {naive['speedup']:.2f} times as fast"
    assert f"{loses} [{naive['speedup_low']:.2f}, {naive['speedup_high']:.2f}]" in page
    assert f"of which {naive['place_ms']:.0f} are for placing" in page
    assert f"is {blend['speedup']:.2f} times as fast, `fusionrag` {fusion['speedup']:.2f}" in page
    blocks_, kernel = timed["sparse-query attention, 32/8 heads of 128"]["rows"][-2:]
    assert f"{kernel['ms']:.1f} ms by our kernel, {blocks_['ms']:.0f} ms in blocks" in page
    assert f"{kernel['flash_ms']:.1f} ms by flash" in page
    assert f"{kernel['useful_flops_over_flash']:.0%}".replace("%", " % of flash") in page
    assert 16 <= blocks_["ms"] / kernel["ms"] < 17
    off, step, on, _ = timed["cuDNN on and off, qwen2.5-0.5b, 4,096 tokens"]["rows"]
    assert f"from {off['prefill_ms']:.0f} to {on['prefill_ms']:.0f} ms" in page
    assert f"from {off['step_ms']:.0f} to {on['step_ms']:.0f}." in page
    assert f"({step['step_ms']:.0f} ms a" in page


def test_what_is_said_of_readers_tuned_on_a_gpu_is_what_was_found() -> None:
    page = " ".join((DOCS / "reader.md").read_text().split())
    curves = json.loads((DOCS / "benchmarks" / "readers-h200.json").read_text())["curves"]
    looks = [[line for line in curve if "validation" in line] for curve in curves.values()]
    before, halfway, end = (
        sorted(line["validation"]["notes"]["exact"] for line in of) for of in zip(*looks, strict=True)
    )
    shown = [f"{of[0]:.2f} to {of[-1]:.2f}".replace("0.", ".") for of in (before, halfway, end)]
    assert before[-1] < halfway[0]
    assert f"{shown[0]} before, {shown[1]} halfway and {shown[2]} at the end" in page
    assert {f"{look[-1]['tokens'] / 1e6:.1f}" for look in looks} == {"2.2"}


def test_the_examples_of_adding_a_method_run(tmp_path: Path, reader: Reader) -> None:
    engine, chunks = make(tmp_path, reader, "fusionrag", "naive")
    asked: list[Method] = []

    def ask(question: str, *, method: Method, recompute: float) -> None:
        asked.append(method)
        assert engine.prefill(question, chunks, method=method, recompute=recompute).report.tokens.recomputed > 0

    combination, choice = blocks("adding-a-method.md")
    exec(combination, {"rag": SimpleNamespace(ask=ask)})
    assert asked[0].name == "mine"
    names: dict[str, type] = {}
    exec(choice, names)
    row = Method("last", METHODS["naive"].encode, names["LastTokens"](), 0.2)
    report = engine.prefill(QUESTION, chunks, method=row).report
    assert report.tokens.recomputed == pytest.approx(0.2 * report.tokens.context, abs=1)


def test_the_examples_of_hooks_run_and_leave_indexes_that_know_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    tiny_model("llama").save_pretrained(checkpoint)
    byte_tokenizer().save_pretrained(checkpoint)
    write_adapter(tmp_path / "adapter", tiny_model("llama"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "harbour.txt").write_text("The harbour master is Mara Voss.\n\nShe counts boats.")
    (tmp_path / "notes" / "mill.txt").write_text("The mill grinds rye on Mondays.")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"checkpoint": str(checkpoint)}
    for block in blocks("hooks.md"):
        exec(block, names)
    assert str(tmp_path / "notes" / "harbour.txt") in capsys.readouterr().out.splitlines()
    for index, own in {"by-words": "hashed-words-512", "by-paragraph": "paragraphs"}.items():
        assert own in settings_of(tmp_path / index).values()


def test_the_example_of_a_prompt_of_one_s_own_runs(
    tmp_path: Path, reader: Reader, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, chunks = make(tmp_path, reader, "auto")
    block, follow_up = blocks("your-own-prompt.md")
    notes = f"{TEXTS[2]}\n\n{TEXTS[0]}"
    names: dict[str, Any] = {"rag": SimpleNamespace(engine=engine), "notes": notes, "question": QUESTION}
    exec(block, names)
    assert [chunk.source for chunk in names["answer"].report.chunks] == ["doc2", "doc0"]
    assert capsys.readouterr().out
    assert len(engine.complete(names["conversation"]).report.chunks) == 2

    def ask(question: str, *, history: list[Message]) -> Answer:
        return engine.answer(question, chunks[:2], history=history)

    names["rag"] = SimpleNamespace(ask=ask)
    exec(follow_up, names)
    assert [chunk.cache for chunk in names["answer"].report.chunks] == ["hit", "hit"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    lost = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not lost


def test_the_page_on_documents_names_every_format_and_every_default_pattern() -> None:
    text = (DOCS / "documents.md").read_text(encoding="utf-8")
    assert [suffix for suffix in SUPPORTED if f"`{suffix}`" not in text] == []
    assert [pattern for pattern in DEFAULT_EXCLUDES if f"`{pattern}`" not in text] == []
    assert set(re.findall(r"`(\.[a-z0-9]+)`", text)) <= {*SUPPORTED, *IGNORE_FILES, ".git", ".venv"}


def test_what_kv_tells_of_secrets_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "planted-secrets.json").read_text())["rows"]
    page = (DOCS / "security.md").read_text(encoding="utf-8").replace("**", "")
    stated = re.findall(r"(\.\d\d) \[(\.\d\d), (\.\d\d)\]", page)
    told = [row for row in rows if row["method"] != "naive" or not row["labels"]]
    measured = [
        tuple(row[f"{what}_picked{end}"] for end in ("", "_low", "_high"))
        for row in told
        for what in ("subject", "secret")
    ]
    assert [tuple(float(figure) for figure in one) for one in stated] == [
        tuple(pytest.approx(figure, abs=0.0051) for figure in one) for one in measured
    ]
    assert page.count("| 0 of 500 |") == len(told)
    assert not any(row["secret_said"] for row in rows)


def test_what_codecs_cost_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "kv-codecs.json").read_text())["sizes"]
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    large, small = (
        {row["codec"]: row for row in rows if row["form"] == form and row["dtype"] == "bfloat16"}
        for form in ("llama-3.1-8b", "qwen2.5-0.5b")
    )
    codecs = ("int8", "k8v4", "raw")
    placed, read = ([f"{large[name][f'{what}_gb_per_s']:.1f}" for name in codecs] for what in ("placed", "from_file"))
    assert f"at {placed[0]} GB/s (`int8`, bf16 buffer) and {placed[1]} (`k8v4`)" in page
    assert f"where `raw` is copied at {placed[2]}; from a file" in page
    assert f"checksums included, at {read[0]} and {read[1]} against {read[2]}" in page
    slower = [f"{small[name]['from_file_gb_per_s']:.1f}" for name in codecs]
    assert f"{slower[0]} and {slower[1]} against {slower[2]}" in page


def test_how_soon_the_first_token_comes_by_codec_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "codec-latency.json").read_text())
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    least, most = (f"{extreme(row['ttft_ms'] for row in found['rows']) / 1000:.2f}"[1:] for extreme in (min, max))
    assert f"needs {least} to {most} seconds by any of" in page
    times = round(median(row["times_sooner"] for row in found["rows"]))
    assert f"where full prefill takes {times} times as long" in page
    assert found["meta"]["context"] == 2048


def test_what_codecs_answer_on_the_larger_model_is_what_was_measured() -> None:
    pooled = json.loads((DOCS / "benchmarks" / "kv-codecs-smollm2.json").read_text())["pooled"]
    ours = {row["codec"]: row for row in pooled if row["method"] == "auto"}
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split()).replace("[.", "[0.")
    assert ours["int8"]["em"] == ours["k8v4"]["em"]
    said = f"{ours['raw']['n']} questions ([figures](../benchmarks/kv-codecs-smollm2.md)): the default "
    said += f"{ours['raw']['em']:.3f} from `raw` and {ours['int8']['em']:.3f} from either".replace("0.", ".")
    assert said in page
    for codec in ("int8", "k8v4"):
        delta = ours[codec]["delta"]
        assert f"[{delta['low']:.3f}, {delta['high']:.3f}] for `{codec}`".replace("0.", ".") in page.replace("0.", ".")


def test_what_codecs_answer_on_long_documents_is_what_was_measured() -> None:
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    for name in ("documents", "documents-twins"):
        pooled = json.loads((DOCS / "benchmarks" / f"kv-codecs-smollm2-{name}.json").read_text())["pooled"]
        default, naive = (
            [f"{row['em']:.3f}"[1:] for row in pooled if row["method"] == method] for method in ("auto", "naive")
        )
        said = f"{pooled[0]['n']} questions ([figures](../benchmarks/kv-codecs-smollm2-{name}.md)): the default "
        said += f"{default[0]} from `raw`, {default[1]} from `int8`, {default[2]} from `k8v4`, "
        assert f"{said}naive reuse {naive[0]}, {naive[1]} and {naive[2]}" in page


def test_what_codecs_answer_on_every_task_and_twin_is_what_was_measured() -> None:
    pooled = json.loads((DOCS / "benchmarks" / "kv-codecs-tasks.json").read_text())["pooled"]
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    em = {row["codec"]: f"{row['em']:.3f}"[1:] for row in pooled if row["method"] == "auto"}
    assert em["raw"] == em["int8"]
    assert f"{pooled[0]['n']} questions in fp32" in page
    assert f"the default {em['raw']} are right from `raw` and from `int8`, {em['k8v4']} from `k8v4`" in page
    assert {(row["codec"], row["lost"] + row["won"]) for row in pooled} == {("raw", 0), ("int8", 0), ("k8v4", 1)}
    bound = 100 * (1 - 0.05 ** (1 / pooled[0]["n"]))  # of a share that was not met once
    assert f"changes to {bound:.1f} points" in page


def test_how_long_a_command_is_by_its_start_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "cold-start.json").read_text())["rows"]
    page = " ".join((DOCS / "decisions.md").read_text(encoding="utf-8").split())
    (row,) = (row for row in rows if row["seconds"] == "processor")
    before, lean, ratio = (row[name] for name in ("before", "lean", "ratio"))
    assert f"takes {lean['median']:.1f} seconds of a processor, without them {before['median']:.1f}:" in page
    assert f"{ratio['median']:.2f} times sooner [{ratio['least']:.2f}, {ratio['most']:.2f}]" in page


def test_what_contextpilot_gains_on_a_trace_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "trace-contextpilot-smollm2.json").read_text())
    page = " ".join((DOCS / "benchmarks" / "speed.md").read_text(encoding="utf-8").split())
    said = {row["method"]: tuple(row[f"speedup{end}"] for end in ("", "_low", "_high")) for row in found["rows"]}
    for method, name, digits in (
        ("prefix cache", "the prefix cache alone", 2),
        ("prefix cache, ContextPilot's order", "in ContextPilot's order", 2),
        ("naive", "naive reuse", 1),
        ("prophetkv", "`prophetkv` at 15 %", 1),
    ):
        ratio, low, high = (f"{one:.{digits}f}" for one in said[method])
        assert f"{name} {ratio}× [{low}, {high}]" in page
    trace = found["meta"]["trace"]
    assert f"{trace['questions']} questions over {trace['chunks'] * trace['tokens']:,} tokens" in page


def test_what_many_processes_did_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "many-processes.json").read_text())
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    ingested, asked, left = found["ingest"], found["ask"], found["left"]
    assert f"{ingested['documents_added'] + ingested['documents_changed']:,} documents were added or changed" in page
    assert f"and {found['remove']['removed']} removed" in page
    right = f"{asked['steady_right']} of {asked['steady_asked']} were right; one process alone answers "
    assert right + f"{left['steady_right_of_one_process']} of {left['steady']} so" in page
    assert left["sound_at_the_end"]
    assert (found["failed"], left["verified_at_once"]) == ([], [])
    assert (left["kv_files_differ"], left["answers_differ"]) == (0, 0)


def test_what_damage_did_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "damage.json").read_text())
    page = " ".join((DOCS / "guides" / "storage.md").read_text(encoding="utf-8").split())
    assert f"{found['damaged']:,} times, {found['meta']['n']} in each part" in page
    assert found["harmful"] == 0
    unnamed = [row for row in found["rows"] if row["verify"] == "not named"]
    assert {row["answers"] for row in unnamed} == {"the same answers"}
    assert f"{sum(row['n'] for row in unnamed)} of them it did not name" in page


def test_what_a_question_costs_is_what_was_measured() -> None:
    full, *rows = json.loads((DOCS / "benchmarks" / "question-cost.json").read_text())["rows"]
    page = " ".join((DOCS / "costs.md").read_text(encoding="utf-8").split()).replace("[.", "[0.").replace(" .", " 0.")
    for row in rows:
        pays = row["break_even"]
        assert f"after {pays['median']:.2f} " in page.replace("questions", "")
        assert f"[{pays['least']:.2f}, {pays['most']:.2f}]" in page
    seconds = [f"{row['seconds']['median']:.2f}" for row in (*rows, full)]
    assert "takes {}, {} and {} seconds, where full prefill takes {}".format(*seconds) in page
    shares = [f"{100 * row['flops_share']:.1f} %" for row in rows]
    assert "{}, {} and {} of full prefill's FLOPs".format(*shares) in page
    assert max(row["pays_from"] for row in rows) == 2


def test_how_soon_an_early_start_answers_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "early-start.json").read_text())["rows"]
    page = " ".join((DOCS / "hooks.md").read_text(encoding="utf-8").split())
    reused = [row["ratio"]["median"] for row in rows if not row["recompute"]]
    recomputed = [row["ratio"]["median"] for row in rows if row["recompute"]]
    assert f"{min(reused):.2f} to {max(reused):.2f} times as late".removeprefix("0") in page
    assert f"{min(recomputed):.1f} to {max(recomputed):.1f} times as long" in page


def test_what_prompt_lookup_gains_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "whole-answer.json").read_text())["rows"]
    page = (DOCS / "benchmarks" / "speed.md").read_text(encoding="utf-8")
    for plain, drafted in zip(rows[::2], rows[1::2], strict=True):
        assert plain["by"] == drafted["by"]
        quoted = f"{plain['quoted']:.2f}".removeprefix("0")
        seconds = (plain["first_token_seconds"], plain["seconds"], drafted["seconds"])
        against = [
            "than_without",
            "than_generate",
            *(["than_generate_with_lookup"] if plain["by"] != "generate" else []),
        ]
        sooner = ("{:.1f}× [{:.1f}, {:.1f}]".format(*drafted[name]) for name in against)
        cells = (f"`{plain['by']}`", quoted, *(f"{one:.1f} s" for one in seconds), *sooner)
        assert f"| {plain['prompt']} | {plain['context']:,} | {' | '.join(cells)} |" in page
    assert all(row["same_tokens_as_without"] == 5 for row in rows)
    (gain,) = {f"{row['than_without'][0]:.1f}" for row in rows if row["by"] == "auto" and row["prompt_lookup"]}
    assert f"{gain} times with the default" in " ".join((DOCS / "architecture.md").read_text(encoding="utf-8").split())


def test_what_speculation_gains_and_loses_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "speculation.json").read_text())["rows"]
    page = " ".join((DOCS / "hooks.md").read_text(encoding="utf-8").split())
    sooner = {(row["order"], row["method"]): row["sooner"] for row in rows}
    naive = (f"{sooner['nearest', 'naive'][name]:.2f}" for name in ("median", "least", "most"))
    assert "{} times sooner with `naive` ({} to {})".format(*naive) in page
    others = {f"{sooner['nearest', name]['median']:.2f}" for name in ("prophetkv", "full")}
    assert all(f"{one} with `prophetkv` and with full prefill" in page for one in others)
    later = [f"{sooner['any', name]['median']:.2f}" for name in ("naive", "prophetkv", "full")]
    assert "{}, {} and {} times".format(*later) in page
    assert {row["settled"][0] for row in rows if row["order"] == "nearest"} == {0.7}
    assert all(row["alike"] == 1 for row in rows)  # the answers, with it and without


def test_what_caches_kept_from_prompts_are_worth_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "repeat-trace.json").read_text())["rows"]
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| .*? \| ([.\d]+) \[([.\d]+), ([.\d]+)\] \| ([.\d]+) \| ([.\d]*) ?\| ?(\d*) ?\|$", page, re.MULTILINE
    )
    whole = {(row["system"], row["alpha"]): row for row in rows if row["of"] == 500}
    shown = [("full", None), ("naive", None), ("cachecraft", 0.0), ("prophetkv", 0.0)]
    shown += [(name, 0.6) for name in ("cachecraft", "drawn", "prophetkv")]
    told = [whole[one] for one in shown]
    assert len(lines) == len(told)
    for (em, low, high, computed, behind, held), row in zip(lines, told, strict=True):
        assert (float(em), float(low), float(high)) == tuple(
            pytest.approx(row["em"][end], abs=0.00051) for end in ("mean", "low", "high")
        )
        assert float(computed) == pytest.approx(row["computed"], abs=0.0051)
        assert float(behind or 0) == pytest.approx(row["harvest_flops"], abs=0.0051)
        assert float(held or 0) == pytest.approx(row["bytes"] / 2**20, abs=0.51)


def test_what_is_found_and_read_right_is_what_was_measured() -> None:
    rows = json.loads((DOCS / "benchmarks" / "retrieval-corpus.json").read_text())["rows"]
    shares = {(row["set"], row["kind"], row["retriever"], row["measure"]): row["share"] for row in rows}
    page = (DOCS / "documents.md").read_text(encoding="utf-8")
    for kind, name in (("one-hop", "one fact"), ("two-hop", "two facts"), ("section", "a section")):
        for search in ("hybrid", "iterative"):
            cells = [
                short(shares[of, kind, search, measure])
                for of in ("corpus", "drawn")
                for measure in ("recall", "auto", "auto at 0", "full")
            ]
            assert f"| {name} | {search} | {' | '.join(cells)} |" in page
    public = json.loads((DOCS / "benchmarks" / "retrieval-public.json").read_text())["rows"]
    found = [shares["corpus", kind, "iterative", "recall"] for kind in ("one-hop", "two-hop", "section")]
    found += [row["share"] for row in public if row["retriever"] == "iterative"]
    assert f"| both | iterative | {' | '.join(map(short, found))} |" in page
    parts = json.loads((DOCS / "benchmarks" / "retrieval.json").read_text())["rows"]
    other = {
        (row["set"], row["retriever"]): row["share"] for row in parts if row["titles"] == "both" and not row["kind"]
    }
    again = {(row["set"], row["retriever"]): row["share"] for row in public if row["retriever"] != "iterative"}
    assert again == {one: pytest.approx(other[one], abs=0.002) for one in again}
    for kind in ("one-hop", "two-hop", "section"):
        assert shares["drawn", kind, "iterative", "recall"] > shares["drawn", kind, "hybrid", "recall"]
    earlier = json.loads((DOCS / "benchmarks" / "retrieval-corpus-best-first.json").read_text())["rows"]
    first = {(row["kind"], row["retriever"], row["measure"]): short(row["share"]) for row in earlier}
    told = [first["section", search, measure] for measure in ("auto", "full") for search in ("hybrid", "iterative")]
    assert "the default answered {} and {} right, and full prefill {} and {}".format(*told) in " ".join(page.split())
    decided = " ".join((DOCS / "decisions.md").read_text(encoding="utf-8").split())
    pairs = [
        (first[kind, "hybrid", measure], short(shares["corpus", kind, "hybrid", measure]))
        for kind in ("section", "one-hop")
        for measure in ("full", "auto")
    ]
    said = "full prefill answered {} best chunk first and {} by document, the default {} and {}; of the one-fact "
    said += "questions {} and {}, and {} and {}, which is noise"
    assert said.format(*(one for pair in pairs for one in pair)) in decided


def test_what_tuning_to_read_apart_is_worth_is_what_was_measured() -> None:
    page = (DOCS / "guides" / "tuned-readers.md").read_text(encoding="utf-8")
    figure = r"(-?[.\d]+|)"
    span = rf"(?:{figure} \[(-?[.\d]+), (-?[.\d]+)\])?"
    public = json.loads((DOCS / "benchmarks" / "tuned-rows-smollm2.json").read_text())
    rows = {(row["method"], row["recompute"]): row for row in public["pooled"]}
    shown = [("full", None), ("naive", None), ("random", 0.05), ("auto", 0.0), ("turborag", 0.0)]
    tuned = ("turborag", "block-attention", "kvlink")
    shown += [("block-attention", 0.0), ("kvlink", 0.0), *((f"full of {name}", None) for name in tuned)]
    line = rf"^\| [^|]+ \| {figure} ?\| ?{figure} ?\| ?{span} ?\| ?{span} ?\|$"
    told = re.findall(line, page.replace("**", ""), re.MULTILINE)
    assert len(told) == len(shown)
    for (plain, share, *spans), one in zip(told, shown, strict=True):
        row, later = rows[one], rows.get((one[0], 0.05))
        assert float(plain or share) == row["sub_em"]
        assert not (plain and share) or (later and float(share) == later["sub_em"])
        names = ("sub_em_delta", "sub_em_low", "sub_em_high", "gain", "gain_low", "gain_high")
        for said, name in zip(spans, names, strict=True):
            assert not said or float(said) == pytest.approx(row[name], abs=0.00051)
    costs = {one["recipe"]: one["ordinary"] for one in public["meta"]["tuned"]}
    nats = [costs["turborag"]["nats_before"], *(costs[name]["nats_after"] for name in tuned)]
    flat = " ".join(page.split())
    assert "{} nats a token before, {}, {} and {} after".format(*(short(one, 3) for one in nats)) in flat
    assert f"count as {rows['kvlink', 0.0]['charged']:.1%} of the".replace("%", " %") in flat
    own = json.loads((DOCS / "benchmarks" / "tuned-rows-reader.json").read_text())
    rows = {(row["method"], row["recompute"]): row for row in own["pooled"] if row["task"] == "all tasks"}
    lines = {f"`{name}`": ((name, 0.0), (name, 0.05), (f"full of {name}", None)) for name in tuned}
    lines["control:"] = (("naive of full", None), ("auto of full", 0.05), ("full of full", None))
    for name, cells in lines.items():
        said = " | ".join(f"{rows[cell]['score']:.3f}"[1:] for cell in cells)
        assert re.search(rf"^\| {name}[^|]* \| {re.escape(said)} \|$", page, re.MULTILINE)
    plain = [
        f"{rows[one]['score']:.3f}"[1:] for one in (("full", None), ("naive", None), ("random", 0.05), ("auto", 0.05))
    ]
    assert "full prefill {}, `naive` {}, random 5 % {}, **default {}**".format(*plain) in flat
    twins = [row["score"] for row in own["pooled"] if row["task"] == "all twins"]
    assert "all of them have .95 to .98" in flat
    assert min(twins) >= 0.95
    assert max(twins) < 0.985
    for tuned in [*public["meta"]["tuned"], *own["meta"]["tuned"]]:
        assert all(f"{tuned['ordinary'][name]:.3f}"[1:] in page for name in ("nats_before", "nats_after"))


def shown(*found: dict[str, float]) -> str:
    """Means with their intervals, as cells of a row."""
    rows = (f"{one['mean']:.2f} [{one['low']:.2f}, {one['high']:.2f}]" for one in found)
    return re.sub(r"\b0\.", ".", " | ".join(rows))


def test_what_a_server_finds_of_its_answers_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "verified-share.json").read_text())
    page = " ".join((DOCS / "guides" / "serving.md").read_text(encoding="utf-8").split())
    documents = {"sections": "as the prompt has them", "sections-misled": "with parts in another order"}
    for row in found["rows"]:
        server, without = row["served"] | {"mean": row["served"]["share"]}, row["offline"]
        assert f"| `{row['method']}` | {documents[row['task']]} | {shown(server, without)} |" in page
        assert without["low"] <= server["share"] <= without["high"]
    honest, misled = (found["falling_back"][task] for task in documents)
    assert not honest["below"]
    assert misled["below"]
    assert f"full prefill answered {misled['answered_by_full']} of {misled['questions']} of them" in page
    assert f"it took {misled['questions'] - misled['answered_by_full']} to be sure." in page


def test_what_learnt_texts_are_worth_is_what_was_measured() -> None:
    page = " ".join((DOCS / "guides" / "serving.md").read_text(encoding="utf-8").split())

    for name, row in (("learnt-texts", "`--learn`, the default"), ("learnt-texts-naive", "`--learn --method naive`")):
        found = json.loads((DOCS / "benchmarks" / f"{name}.json").read_text())["summary"]
        rows = [(row, "reused", "em")]
        if name == "learnt-texts":
            rows += [("full prefill's answers", "prefix", "full_em"), ("order", "reordered", "reordered_em")]
        for label, reusing, right in rows:
            parts = found[f"{reusing}_over_time"]
            over_time = f"{parts[0]:.2f} → {parts[-1]:.2f}".replace("0.", ".")
            told = f"{shown(found[reusing])} | {over_time} | {shown(found[right])} |"
            assert re.search(re.escape(label) + "[^|]*" + re.escape(f" | {told}"), page), told
        sooner = [found[f"sooner_than_{than}"] for than in ("full", "full_last_part", "prefix", "reordered")]
        assert f"{row} | {shown(*sooner)} |" in page
        assert found["agreement"] == 1


def test_what_a_loaded_and_killed_server_did_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "serving-load.json").read_text())
    page = " ".join((DOCS / "guides" / "serving.md").read_text(encoding="utf-8").split())
    load, kill, memory = found["load"], found["kill"], found["load"]["resident_mib"]
    assert (
        f"{found['meta']['streams']} clients at once over loopback for five minutes: {load['right']:,} answers" in page
    )
    assert (load["wrong"], load["429"], load["error"], found["meta"]["minutes"]) == (0, 0, 0, 5)
    assert (
        f"grew by {memory['mib_a_minute']:.2f} MiB a minute once warm, to {memory['most']:.0f} MiB".replace(
            "0.", ".", 1
        )
        in page
    )
    assert f"after {load['first_token_ms']['p50'] / 1e3:.1f} seconds (median)" in page
    files = kill["files"]
    assert f"in the middle of {kill['broken off']} streams, with {files['total']} uploads" in page
    assert f"answered all {kill['answers_alike']} prompts as before" in page
    assert kill["answers_alike"] == kill["prompts"]
    assert f"ingested all {files['completed']}." in page
    assert (kill["sound_behind_it"], kill["damaged"], kill["sound_in_the_end"]) == (True, 0, True)
    assert kill["chunks_reused"][0] == kill["chunks_reused"][1]


def test_what_a_tenant_found_out_by_probing_is_what_was_measured() -> None:
    found = json.loads((DOCS / "benchmarks" / "tenant-probes.json").read_text())
    page = " ".join((DOCS / "security.md").read_text(encoding="utf-8").split())
    prompts, ids = found["apart"]["prompts"], found["apart"]["ids"]
    assert f"{prompts['probes'] + ids['probes']:,} probes by a tenant" in page
    assert f"(p = {prompts['p_value']:.2f} for prompts, {ids['p_value']:.2f} for ids;".replace("0.", ".") in page
    assert (prompts["hits"], ids["hits"], prompts["said_alike"], ids["said_alike"]) == (0, 0, True, True)
    assert found["control"]["prompts"]["hits"] > 0
    assert found["control"]["prompts"]["p_value"] < 0.001


def test_how_long_a_request_may_take_to_come_is_what_the_server_allows() -> None:
    from openai_ragcache import ServerSettings

    settings, page = ServerSettings(), (DOCS / "guides" / "serving.md").read_text(encoding="utf-8")
    assert (
        f"Headers have {settings.headers_seconds:.0f} seconds to come, and a body {settings.body_seconds:.0f}." in page
    )


def test_what_a_scanner_says_of_the_server_is_what_it_reported() -> None:
    found = json.loads((DOCS / "benchmarks" / "compatcanary.json").read_text())
    page = (DOCS / "guides" / "serving.md").read_text(encoding="utf-8")
    counts = found["summary"]
    assert f"CompatCanary {found['scanner']['version']}, profile `{found['target']['profile']}`" in page
    assert f"{counts['passes']} of {counts['total']} probes pass" in page
    failed = {one["id"]: one["error"]["httpStatus"] for one in found["results"] if one["status"] != "pass"}
    assert failed == {"chat.tool_call": 400, "chat.structured_output": 400}


def test_nothing_tells_anybody_to_install_somebody_elses_package() -> None:
    """`ragcache` on the public index is another project's; ours is `ragcache-kv`, or the checkout."""
    named = re.compile(r"pip install[^\n`]*['\" ]ragcache(?!-kv)\b|needs\([\"']ragcache")
    files = [ROOT / "README.md", ROOT / "Makefile", ROOT / ".ci" / "run"]
    for folder in ("ragcache", "cli", "integrations", "examples", "docs"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]
    assert named.search("run `pip install 'ragcache[offline]'`")
    assert [str(path) for path in files if named.search(path.read_text(encoding="utf-8"))] == []
