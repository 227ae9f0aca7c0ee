import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from conftest import byte_tokenizer, tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st
from ragcache_bench.grid import candidates, parse, spelled, tunable
from ragcache_bench.table import Row
from ragcache_bench.tuning import _rank, halves
from ragcache_bench.user_questions import OwnQuestion
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

from ragcache.encode import Sink
from ragcache.errors import InvalidArgument
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.rag import RagCache
from ragcache.select import KeyDeviation, QuestionAttention

PLAIN = ("NoneType", "Flat", "RandomTokens", "FirstTokens", "ValueShift")  # with nothing to set, or not by type
BLEND, FUSION = METHODS["cacheblend"], METHODS["fusionrag"]


@dataclass(frozen=True)
class Declared(KeyDeviation):
    """Says itself what to try, and holds another choice."""

    window: int = field(default=8, metadata={"tune": (4, 32)})
    inner: QuestionAttention = field(default_factory=QuestionAttention)
    share: float = 0.5
    exact: bool = True
    seed: int = 3
    word: str = "sibling"


def test_what_is_tried_is_declared_or_follows_from_the_type() -> None:
    found = tunable(replace(FUSION, select=Declared()))
    assert found["select.window"] == (8, 4, 32)
    assert found["select.inner.reduce"][0] == "sum"
    assert set(found["select.inner.reduce"]) >= {"mean", "max", "norm"}
    assert found["select.inner.layers"] == ("last", "all")
    assert (found["select.share"], found["select.exact"]) == ((0.5, 0.25, 0.75), (True, False))
    assert not {"select.seed", "select.word", "encode.neighbours"} & set(found)


def test_psr_is_tuned_in_its_three_settings_together() -> None:
    tried = ("encode.tokens", "attend.temperature", "attend.scale")
    assert tunable(METHODS["psr"])["encode.tokens"] == (4, 1, 2, 3, 5, 10)
    [found] = candidates([METHODS["psr"]], dict.fromkeys(tried, (1, 0.5)), count=99).values()
    assert any(set(one.settings) == set(tried) for one in found)
    assert {one.method.encode.recipe for one in found} >= {"sink(tokens=4)", "sink(tokens=1)"}  # type: ignore[union-attr]
    for stored in ("fusionrag", "in-document", "droidspeak"):
        assert not [path for path in tunable(METHODS[stored]) if path.startswith("encode")]


@pytest.mark.parametrize("row", METHODS.values(), ids=lambda row: row.name)
def test_every_row_of_the_table_knows_what_to_try(row: Method) -> None:
    grid = tunable(row)
    assert all(len(set(values)) == len(values) > 1 for values in grid.values())
    online = any(type(choice).__name__ not in PLAIN for choice in (row.select, row.attend, row.schedule))
    assert bool(grid) == (online or isinstance(row.encode, Sink))


@settings(deadline=None)
@given(st.lists(st.sampled_from(["fusionrag", "cacheblend", "prophetkv"]), min_size=1, unique=True), st.integers(2, 20))
def test_every_row_gets_as_many_candidates_and_its_own_settings_first(names: list[str], count: int) -> None:
    found = candidates([METHODS[name] for name in names], None, count)
    assert len({len(all_of) for all_of in found.values()}) == 1
    for name, (first, *others) in found.items():
        assert first.method == METHODS[name]
        assert not first.settings
        assert others
        assert len({one.method.name for one in (first, *others)}) == len({repr(one.method) for one in (first, *others)})
        assert len({repr(replace(one.method, name="")) for one in (first, *others)}) == 1 + len(others) <= count
        assert [len(one.settings) for one in others] == sorted(len(one.settings) for one in others)


def test_a_grid_is_taken_as_spelled() -> None:
    grid = parse(["select.layers=last,all,(0.5,0.75)", " select.reduce = max "])
    assert grid == {"select.layers": ("last", "all", (0.5, 0.75)), "select.reduce": ("max",)}
    found = candidates([FUSION], grid)["fusionrag"]
    layers = ["select.layers=all", "select.layers=(0.5, 0.75)"]
    both = [f"{one}, select.reduce=max" for one in layers]
    assert {spelled(one.settings) for one in found} == {"", "select.reduce=max", *layers, *both}
    by_name = {spelled(one.settings): one.method.select for one in found}
    assert by_name["select.layers=(0.5, 0.75)"] == replace(FUSION.select, layers=(0.5, 0.75))  # type: ignore[type-var]


@pytest.mark.parametrize("spec", ["select.layers", "select.layers=", "=last", ""])
def test_a_grid_that_names_nothing_is_refused(spec: str) -> None:
    with pytest.raises(InvalidArgument, match=r"select\.layers=last,all"):
        parse([spec])


def test_a_field_that_no_row_has_is_refused_and_so_is_a_row_without_any() -> None:
    with pytest.raises(InvalidArgument, match=r"select\.colour.*cacheblend.*select\.layer"):
        candidates([BLEND], {"select.colour": ("red",)})
    with pytest.raises(InvalidArgument, match=r"encode\.neighbours"):
        candidates([FUSION], {"encode.neighbours": (5,)})
    with pytest.raises(InvalidArgument, match="'full' has nothing to tune"):
        candidates([METHODS["full"], FUSION])
    with pytest.raises(InvalidArgument, match="'cacheblend' has nothing"):
        candidates([BLEND, FUSION], {"select.reduce": ("max",)})


@settings(deadline=None)
@given(st.lists(st.text("abc ", min_size=1, max_size=3).filter(str.strip), max_size=20), st.integers(0, 5))
def test_no_question_is_in_both_halves(texts: list[str], seed: int) -> None:
    asked = [OwnQuestion(line, text) for line, text in enumerate(texts, 1)]
    different = {" ".join(w for w in text.split() if w != "a") for text in texts}  # an article is no word
    if len(different) < 2:
        with pytest.raises(InvalidArgument, match="two or more"):
            halves(asked, seed)
        return
    first, second = halves(asked, seed)
    assert sorted((*first, *second), key=lambda one: one.line) == asked
    assert not {one.question for one in first} & {one.question for one in second}
    assert (first, second) == halves(asked, seed)
    assert first


def row(score: float, agreement: float, kl: float) -> Row:
    return Row("questions", "m", 0.1, 0.1, 0.2, 9, score, agreement=agreement, kl=kl)


def test_a_tie_is_broken_by_agreement_and_then_by_divergence() -> None:
    ordered = [row(0.5, 0.5, 2.0), row(0.5, 0.5, 1.0), row(0.5, 0.9, 3.0), row(0.6, 0.1, 4.0)]
    scrambled = [ordered[i] for i in (2, 0, 3, 1)]
    assert sorted(scrambled, key=lambda one: _rank(one, "score")) == ordered
    assert max(ordered, key=lambda one: _rank(one, "agreement")) is ordered[2]


QUESTIONS = [
    {"question": "Who leads the Tide project?", "answers": ["Mara Voss"]},
    *({"question": f"What does the mill grind on day {day}?"} for day in range(7)),
]


@pytest.fixture(scope="module")
def asked_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions, and an index that holds KV for naive and its kind only."""
    root = tmp_path_factory.mktemp("tune")
    (root / "documents").mkdir()
    tiny_model("llama").save_pretrained(root / "model")
    byte_tokenizer().save_pretrained(root / "model")
    for name, text in {"a": "The Tide project is led by Mara Voss.", "b": "The mill grinds rye."}.items():
        (root / "documents" / f"{name}.txt").write_text(text)
    with RagCache.open(root / "index", model=str(root / "model")) as rag:
        rag.ingest(root / "documents", methods=["naive"])
    (root / "my.jsonl").write_text("".join(json.dumps(line) + "\n" for line in QUESTIONS))
    return root


def tune(root: Path, out: Path, *more: str) -> Result:
    options = ["--questions", str(root / "my.jsonl"), "--index", str(root / "index"), "--out", str(out)]
    return CliRunner().invoke(app, ["bench", "tune", *options, "--budget", "0.3", "--max-new-tokens", "3", *more])


def test_the_best_on_one_half_is_judged_on_the_other(asked_of: Path, tmp_path: Path) -> None:
    out = tmp_path / "tune.json"
    result = tune(asked_of, out, "--methods", "cacheblend,prophetkv", "--candidates", "3", "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    assert content["meta"]["questions"] == {"tuning": 4, "held_out": 4}
    tried = [one["method"] for one in content["candidates"]]
    assert len(set(content["meta"]["candidates"].values())) == 1
    assert tried.count("cacheblend") == tried.count("prophetkv") == content["meta"]["candidates"]["prophetkv"]
    for name in ("cacheblend", "prophetkv"):
        rows = [one for one in content["rows"] if one["method"] == name]
        assert [one["chosen"] for one in rows][-1]
        assert sum(one["chosen"] for one in rows) == 1
        assert rows[0]["settings"] == {}
        mine = [one for one in content["candidates"] if one["method"] == name]
        best = max(mine, key=lambda one: (one["score"], one["agreement"], -one["kl"]))
        assert rows[-1]["settings"] == best["settings"]
        assert rows[-1]["tuning_score"] == best["score"]
    check_figures(content["rows"], out)
    assert [one["method"] for one in content["controls"]] == ["full", "naive"]


def check_figures(rows: list[dict[str, object]], out: Path) -> None:
    """Against the answers that were kept, with a bootstrap of our own."""
    records = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    judged = {r["id"] for r in records if r["method"] == "full"} - {r["id"] for r in records[: len(records) // 2]}
    for found in rows:
        name = found["method"] + (f"[{spelled(found['settings'])}]" if found["settings"] else "")  # type: ignore[operator,arg-type]
        em = {r["id"]: r["em"] for r in records if r["method"] == name and r["id"] in judged}
        default = {r["id"]: r["em"] for r in records if r["method"] == found["method"] and r["id"] in judged}
        gain = np.array([em[i] - default[i] for i in em])
        assert found["n"] == len(em) == 4
        assert found["score"] == pytest.approx(np.mean(list(em.values())))
        assert found["delta"] == pytest.approx(gain.mean())
        drawn = np.random.default_rng(1).choice(gain, (4000, len(gain))).mean(1)
        assert [found["delta_low"], found["delta_high"]] == pytest.approx(
            list(np.percentile(drawn, [2.5, 97.5])), abs=0.26
        )  # one question of four
        assert found["low"] <= found["score"] <= found["high"]  # type: ignore[operator]


def test_a_run_resumes_and_says_what_to_do(asked_of: Path, tmp_path: Path) -> None:
    out = tmp_path / "tune.json"
    grid = ["--methods", "prophetkv", "--grid", "select.layers=last,(0.5,)"]
    assert tune(asked_of, out, *grid).exit_code == 0
    answers = out.with_suffix(".jsonl").read_text()
    shown = tune(asked_of, out, *grid)
    assert out.with_suffix(".jsonl").read_text() == answers  # nothing was asked twice
    assert shown.stdout.strip().splitlines()[-1].startswith("prophetkv: ")
    tried = [one["settings"] for one in json.loads(out.read_text())["candidates"]]
    assert tried[0] == {}
    assert {"select.layers": "last"} in tried
    assert {"select.layers": [0.5]} in tried


def test_throw_away_tokens_are_tried_without_an_index_of_their_own(asked_of: Path, tmp_path: Path) -> None:
    out = tmp_path / "tune.json"
    done = tune(asked_of, out, "--methods", "psr", "--grid", "encode.tokens=1,10", "--json")
    assert done.exit_code == 0, done.output
    tried = json.loads(out.read_text())["candidates"]
    assert tried[0]["settings"] == {}
    assert {one["settings"].get("encode.tokens") for one in tried} == {None, 1, 10}
    assert len({one["kl"] for one in tried}) == 3, "each has KV of its own"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--methods", "fusionrag"], "ragcache ingest --method fusionrag"),
        (["--methods", "naive"], "nothing to tune"),
        (["--methods", "prophetkv", "--budget", "7"], "between 0 and 1"),
        (["--methods", "prophetkv", "--by", "luck"], "luck"),
        (["--methods", "sorcery"], "sorcery"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_tuned_is_refused_with_the_reason(
    asked_of: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    refused = tune(asked_of, tmp_path / "tune.json", *options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert words in refused.stderr
