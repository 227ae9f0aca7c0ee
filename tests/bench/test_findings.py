import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import byte_tokenizer, tiny_model
from numpy.typing import NDArray
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.findings import Finding, at_answers, deviation, effects, fusion, markdown, reversals
from ragcache_bench.findings.deviation import at_heads, chosen, deviations, kept
from ragcache_bench.findings.effects import Effects
from ragcache_bench.findings.fusion import Cell, Given
from ragcache_bench.fused_neighbours import KINDS, Kind, choose_neighbours, documents
from ragcache_bench.records import Journal, Record
from ragcache_bench.reference_attention import Reading, View
from ragcache_bench.runs import Bench
from ragcache_bench.tasks import TASKS, Example
from ragcache_cli.main import app
from typer.testing import CliRunner

from ragcache.encode import Fused
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Template
from ragcache.report import ignore_progress

TEXTS = ("This page is about Tide.", "It is based in Oslo.", "It is led by Mara Voss.", "Otter crosses the sound.")


class Letters:
    """Stands in for the sentence embedder: letter frequencies."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.lower().count(chr(c)) for c in range(97, 123)] for text in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def laid_out(reader: Reader, texts: Sequence[str] = TEXTS) -> Prompt:
    template = Template(reader.tokenizer)
    return template.prompt([template.chunk(text, text) for text in texts], "Where is Tide?")


def examples(count: int = 2) -> list[Example]:
    return [
        Example(f"sections-{i}", "sections", (f"Page {i}.", *TEXTS), f"Where is Tide {i}?", ("Oslo",), (0,))
        for i in range(count)
    ]


# -- a and b: where keys deviate


def test_deviation_is_the_distance_between_two_stock_forwards(reader: Reader) -> None:
    prompt = laid_out(reader)
    full, alone = Reading(reader, prompt, View()), Reading(reader, prompt, View(alone=True))
    first, end = prompt.slots[1], prompt.slots[len(TEXTS) + 1]
    apart = [
        ((a.keys - b.keys)[0, :, first:end] ** 2).sum(-1).mean(0)
        for a, b in zip(full.cache.layers, alone.cache.layers, strict=True)
    ]
    assert torch.allclose(deviations(reader, prompt, "alone"), torch.stack(apart), atol=1e-3, rtol=1e-3)


def test_only_what_stands_behind_its_own_past_does_not_deviate(reader: Reader) -> None:
    prompt = laid_out(reader)
    first = len(prompt.segments[1])
    moved = deviations(reader, prompt, "prefixed")
    assert float(moved[:, :first].max()) < 1e-6 < 1e-3 < float(moved[1:, first:].min(0).values.max())
    assert float(deviations(reader, prompt, "alone")[1:, :first].max()) > 1e-3
    assert float(moved[0].max()) < 1e-6


def test_shares_at_chunk_heads_of_made_up_deviation() -> None:
    offsets = torch.tensor([0, 1, 2, 3, 4] * 4)  # four chunks of five tokens
    moved = torch.stack([torch.zeros(20), torch.ones(20), torch.where(offsets == 0, 10.0, 0.5)])
    found = at_heads(moved, offsets, heads=1, share=0.2)
    assert found["chance"] == pytest.approx(0.2)
    assert found["mass"] == [None, pytest.approx(0.2), pytest.approx(40 / 48)]
    assert found["chosen"] == [None, 0.25, 1.0]  # all alike: the first four tokens, one of them a head


def test_layer_0_never_counts() -> None:
    moved = torch.rand(3, 20, generator=torch.Generator().manual_seed(0))
    assert at_heads(moved, torch.arange(20))["mass"][0] is None
    assert kept(moved)["with_first"][:2] == [None, 1.0]


def test_what_stays_chosen_of_made_up_deviation() -> None:
    moved = torch.zeros(4, 20)
    moved[1, [0, 1, 2, 3]] = 1
    moved[2, [1, 2, 3, 4]] = 1
    moved[3, [3, 4, 5, 1]] = 1
    found = kept(moved, share=0.2)
    assert found["all"] == 0.5  # tokens 1 and 3
    assert found["with_first"] == [None, 1.0, 0.75, 0.5]
    assert found["chance"] == pytest.approx(0.2**2)
    assert kept(torch.zeros(2, 20))["all"] is None


def test_independent_choices_have_in_common_what_chance_says() -> None:
    torch.manual_seed(0)
    found = [kept(torch.rand(3, 100), share=0.15) for _ in range(400)]
    assert np.mean([one["all"] for one in found]) == pytest.approx(found[0]["chance"], abs=0.02)


def test_at_least_one_token_is_chosen() -> None:
    assert chosen(torch.tensor([[0.0, 3.0, 1.0]]), 0.1).tolist() == [[1]]


@pytest.mark.parametrize(
    ("mass", "all_layers", "verdicts"),
    [(0.8, 0.1, ["confirmed"] * 2), (0.4, 0.35, ["partly"] * 2), (0.1, 0.9, ["not confirmed"] * 2)],
)
def test_verdicts_on_deviation(mass: float, all_layers: float, verdicts: list[str]) -> None:
    one = {
        "heads": {"mass": [None, mass], "chosen": [None, mass], "chance": 0.1},
        "kept": {"all": all_layers, "chance": 0.01, "with_first": [None, 1.0]},
    }
    found: deviation.Deviations = {("sections", "alone"): [one] * 5, ("sections", "prefixed"): [one] * 5}
    made = [deviation.heads_finding(found), deviation.kept_finding(found)]
    assert [finding.verdict for finding in made] == verdicts
    assert [row["layer"] for row in made[0].rows] == [1, 1]
    assert [row["layer"] for row in made[1].rows] == [1, "all"] * 2


# -- c: fusing


DOCUMENTS = [["a b c", "a b d", "shared"], ["shared", "x y z", "x y"]]


def near(kind: Kind, text: str, count: int, pool: Sequence[Sequence[str]] = DOCUMENTS) -> Sequence[str]:
    ids = {text: text for document in pool for text in document}
    return choose_neighbours(kind, ids, pool, Letters())(text, count)  # type: ignore[arg-type]


def test_each_kind_of_company() -> None:
    assert near("similar", "x y", 1) == ["x y z"]
    assert near("document", "shared", 2) == ["a b c", "a b d"]
    assert near("document", "shared", 1) == ["a b d"]
    assert near("document", "a b d", 5) == ["a b c"]
    assert near("document", "x y z", 2) == []  # the shared text belongs to the first document
    assert near("itself", "x y", 3) == ["x y"] * 3
    drawn = near("random", "x y", 3)
    assert drawn == near("random", "x y", 3)
    assert len(set(drawn)) == 3
    assert "x y" not in drawn


def test_random_company_is_uniform() -> None:
    texts = [f"text {i}" for i in range(60)]
    drawn = [other for text in texts for other in near("random", text, 10, [texts])]
    counts = [drawn.count(text) for text in texts]
    assert (min(counts) > 0, max(counts) < 25) == (True, True)


def test_documents_are_pages_of_the_corpus_or_the_chunks_of_a_question() -> None:
    pages = documents(TASKS["corpus-section"].examples(4, 0))
    assert all(page[0].startswith("# ") and not any(t.startswith("# ") for t in page[1:]) for page in pages)
    assert documents(examples()) == [list(example.chunks) for example in examples()]


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_are_encoded_behind_their_company(kind: Kind, reader: Reader) -> None:
    example = Example("sections-0", "sections", TEXTS, "Where is Tide?", ("Oslo",), (0,))
    asked = Asked(example, (("key", Cell(kind, 2).contender),))
    job, text = Job("sections", (example,), (asked,), Sampling(), kind), TEXTS[2]
    with filled(job, reader, Letters(), ignore_progress) as (index, ids):  # type: ignore[arg-type]
        chunk = index.chunks([ids[text]])[0]
        stored = index.load(chunk, Fused(2), None).kv
        prefix = reader.encode(index.prefix_segment.token_ids)
        passed = [
            reader.encode(index.uncached_chunk(t).segment.token_ids, (prefix,)) for t in near(kind, text, 2, [TEXTS])
        ]
    expected = reader.encode(chunk.segment.token_ids, (prefix, *passed))
    assert len(passed) == 2
    assert stored is not None
    assert stored.start == expected.start
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(stored.layers, expected.layers, strict=True))


def test_every_cell_answers_every_question_once(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ablation() -> fusion.Scores:
        bench = Bench(reader, Journal(tmp_path / "f.jsonl"), Sampling(max_new_tokens=2), Letters())  # type: ignore[arg-type]
        return fusion.scores(bench, {"sections": examples(1)})

    found = ablation()
    cells = found["sections"]
    assert len(cells) == len(fusion.PLAIN) + len(KINDS) * (4 * 2 + 2)
    assert {len(given.em) for given in cells.values()} == {1}
    charged = {cell: given.charged[0] for cell, given in cells.items()}
    assert charged[Cell("similar", 10)] == 0
    assert charged[Cell("similar", 10, "question", 0.15)] == pytest.approx(0.15, abs=0.02)
    assert charged[Cell("similar", 10, "deviation", 0.15)] > 0.5  # two of four layers, and .15 of four
    monkeypatch.setattr(Engine, "stream", lambda *_, **__: pytest.fail("answered again"))
    assert ablation() == found


def scores(**means: float) -> dict[Cell, Given]:
    """200 questions; every cell scores as its company, or its company and selector, say."""
    cells = [*fusion.PLAIN, *(cell for kind in KINDS for cell in fusion.with_neighbours(kind))]
    level = {cell: means.get(f"{cell.company}_{cell.selector}", means.get(cell.company, 0.3)) for cell in cells}
    right = {cell: round(200 * mean) for cell, mean in level.items()}
    return {cell: Given([1.0] * k + [0.0] * (200 - k), [0.1] * 200) for cell, k in right.items()}


def test_effects_are_those_of_a_regression_on_two_factors() -> None:
    rng = np.random.default_rng(0)
    cells = {cell: Given(rng.random(7).tolist(), [0.0] * 7) for cell in scores()}
    selectors = ("", "question", "deviation")
    ways = [(company, n, selector) for company, n in (("none", 0), ("similar", 10)) for selector in selectors]
    factors = [[1, company == "similar", selector != ""] for company, n, selector in ways]
    answers = [cells[Cell(company, n, selector, 0.15 if selector else 0.0)].em for company, n, selector in ways]
    _, fusing, selecting = np.linalg.lstsq(np.array(factors, dtype=float), np.array(answers), rcond=None)[0]
    found = Effects.of(cells, "similar")
    assert found.fusing == pytest.approx(fusing)
    assert found.selecting == pytest.approx(selecting)
    assert found.difference.mean == pytest.approx((fusing - selecting).mean())


def test_the_ladder_tells_encoding_and_selector_apart() -> None:
    won = effects.ladder_finding({"sections": scores(none=0.3, similar=0.8, similar_question=0.9)})
    row = won.rows[0]
    assert (won.verdict, row["neighbours"], row["n"]) == ("confirmed", "10 similar", 200)
    assert row["fusing is worth"].startswith("0.533 ")  # (0.5 + 0.5 + 0.6) / 3
    assert row["a selector is worth"].startswith("0.025 ")  # (0 + 0 + 0 + 0.1) / 4
    assert (row["question 0.15"], row["fused, question 0.15"]) == pytest.approx((0.3, 0.9))
    assert effects.ladder_finding({"sections": scores(document=0.8)}).verdict == "partly"
    assert effects.ladder_finding({"sections": scores()}).verdict == "not confirmed"


def test_a_selector_that_hurts_does_not_confirm_an_encoding_that_does_nothing() -> None:
    hurt = scores(none_question=0.1, similar_question=0.1, document_question=0.1)
    assert Effects.of(hurt, "similar").difference.low > 0
    assert effects.ladder_finding({"sections": hurt}).verdict == "not confirmed"


def test_tasks_are_pooled_question_by_question() -> None:
    made = effects.ladder_finding({"one": scores(similar=0.8), "two": scores()})
    every = next(row for row in made.rows if (row["task"], row["neighbours"]) == ("all", "10 similar"))
    assert (every["n"], every["fused, no selector"]) == (400, pytest.approx(0.55))
    assert every["fusing is worth"].startswith("0.250 ")


def test_the_ablation_says_whose_company_helps() -> None:
    made = effects.ablation_finding({"sections": scores(full=0.9, naive=0.2, none=0.3, similar=0.6)})
    assert made.verdict == "confirmed"
    row = next(row for row in made.rows if (row["neighbours"], row["recompute"]) == ("similar", 0.0))
    assert [row[name] for name in ("full", "naive", "0", "2", "15")] == pytest.approx([0.9, 0.2, 0.3, 0.6, 0.6])
    assert row["10 - 0"].startswith("0.300 ")
    assert len(made.rows) == len(KINDS) * 2
    assert effects.ablation_finding({"sections": scores(similar=0.6, random=0.6)}).verdict == "partly"
    assert effects.ablation_finding({"sections": scores()}).verdict == "not confirmed"


# -- d: reversals


def test_the_sign_test_is_the_share_of_outcomes_at_least_as_uneven() -> None:
    for gained, lost in [(0, 5), (1, 6), (3, 3), (8, 1)]:
        outcomes = [sum(flips) for flips in itertools.product((0, 1), repeat=gained + lost)]
        uneven = [x for x in outcomes if abs(2 * x - (gained + lost)) >= abs(gained - lost)]
        assert reversals.sign_test(gained, lost) == pytest.approx(len(uneven) / len(outcomes))
    assert reversals.sign_test(0, 0) == 1


def record(method: str, number: int, em: float, **more: Any) -> Record:
    about = {"recompute": None, "seed": 0, "f1": em, "charged": None, "charged_flops": 1.0, "ttft_ms": 1.0}
    return Record(key=f"{method} {number} {more}", task="sections", id=f"sections-0-{number}", method=method,
                  answer=f"{method}'s", em=em, **(about | more))  # fmt: skip


def test_gains_and_losses_are_counted_and_gains_listed() -> None:
    full = [record("full", i, float(i > 1)) for i in range(6)]
    ours = [record("naive", i, float(i not in (1, 3, 4))) for i in range(6)]
    other_seed = [record("naive", i, 1.0, seed=1) for i in range(6)]
    made = reversals.finding([*full, *ours, *other_seed], {"sections-0-0": examples(1)[0]})
    (row,) = made.rows
    assert (row["n"], row["gained"], row["lost"]) == (6, 1, 2)
    (case,) = made.listed
    assert (case["id"], case["reuse"], case["full prefill"]) == ("sections-0-0", "naive's", "full's")
    assert (case["question"], case["right by"]) == ("Where is Tide 0?", "naive")
    assert "1 of the 2 questions" in made.because


def test_seeds_that_take_turns_count_on_every_question() -> None:
    full = [record("full", i, 0.0) for i in range(6)]
    turns = [record("random", i, 1.0, recompute=0.15, seed=i % 3) for i in range(6)]
    (row,) = reversals.finding([*full, *turns]).rows
    assert (row["n"], row["gained"]) == (6, 6)


def test_answers_without_full_prefill_are_refused(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(json.dumps(vars(record("naive", 0, 1.0))) + "\n")
    with pytest.raises(InvalidArgument, match=r"q\.jsonl holds no answers by full prefill"):
        at_answers(tmp_path / "q.jsonl")


# -- pages


def test_a_page_has_a_section_per_finding() -> None:
    rows = ({"task": "a|b", "share": 0.12345, "none": None},)
    page = markdown([Finding("x", "Claims", "a paper", "partly", "so it is.", rows, rows * 20)], listed=3)
    assert "## x. Claims" in page
    assert "From a paper. **Partly**: so it is." in page
    assert page.count("| a\\|b | 0.123 | - |") == 4
    assert "The first 3 of 20 cases" in page


def test_findings_writes_json_and_page_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out, raw = tmp_path / "model", tmp_path / "docs" / "f.json", tmp_path / "q.jsonl"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(model)
    byte_tokenizer().save_pretrained(model)
    random.seed(0)
    raw.write_text("".join(json.dumps(vars(record(m, 0, e))) + "\n" for m, e in (("full", 0.0), ("naive", 1.0))))
    options = ["--tasks", "sections", "--n", "1", "--model", str(model), "--from", str(raw), "--out", str(out)]
    call = ["bench", "findings", "--only", "a,b,d", *options, "--json"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    content = json.loads(out.read_text())
    assert json.loads(result.stdout) == content
    assert [one["letter"] for one in content["findings"]] == ["a", "b", "d"]
    assert content["findings"][2]["listed"][0]["id"] == "sections-0-0"
    assert out.with_suffix(".md").read_text().count("\n## ") == 3
    monkeypatch.setattr(deviation, "deviations", lambda *_: pytest.fail("measured again"))
    assert CliRunner().invoke(app, call).exit_code == 0
    assert CliRunner().invoke(app, ["bench", "findings", "--only", "z"]).exit_code == 2
