"""Every row of the table is what its paper says: its axes, its budget, and the tokens, order and logits it comes to.

Each row's test derives from stock forwards (`derivations`) which tokens are recomputed and what the first token's
logits are, and compares. What a row is set to stands here once more, as its paper has it: a row that is changed by
mistake fails here, whatever else agrees with it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_reader
from dense import dense, plain
from derivations import (
    DOCUMENTS,
    KV,
    LAYERS,
    QUESTION,
    RETRIEVED,
    SIZES,
    TEXTS,
    Corpus,
    Made,
    Stitched,
    alone,
    attention,
    auxiliary,
    behind_line_ends,
    behind_neighbours,
    behind_prefix,
    beside_document,
    densest_last,
    deviation,
    forward,
    in_document,
    masked,
    scaled,
    stitch,
    stock,
)
from torch import Tensor

from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.index.index import Index
from ragcache.method import AXES, Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt

CLOSE = {"atol": 2e-4, "rtol": 1e-4}  # fp32, through 32 layers
ALL = range(LAYERS)

#: What a row is set to, by axis. One that is not named is as here.
PLAIN = {"select": None, "schedule": "Flat()", "attend": None, "layout": "Retrieved()"}
KEYS = "KeyDeviation(layer=1, of='key')"
LAST = "QuestionAttention(layers='last', reduce='sum')"
EVERY = "QuestionAttention(layers='all', reduce='mean')"
RETRIEVAL = f"QuestionAttention(layers={(22 / 32, 23 / 32, 24 / 32, 25 / 32)}, reduce='norm')"
CRITICAL = f"QuestionAttention(layers={(13 / 32, 14 / 32, 17 / 32)}, reduce='max')"
FUSED = "Fused(neighbours=10, by='similarity')"
AXES_OF: dict[str, tuple[float | None, dict[str, str | None]]] = {
    "full": (None, {"encode": None}),
    "prefix": (None, {"encode": "InPlace()"}),
    "naive": (None, {"encode": "Alone()"}),
    "random": (0.15, {"encode": "Alone()", "select": "RandomTokens(seed=0)"}),
    "epic": (0.15, {"encode": "Alone()", "select": "FirstTokens(tokens=None)"}),
    "link0": (None, {"encode": "Sink(tokens=4)"}),
    "ape": (None, {"encode": "Prefixed()", "attend": "Scaled(temperature=0.9, scale=0.9)", "layout": "Overlapped()"}),
    "sel": (None, {"encode": "Prefixed()", "attend": f"TopChunks(chunks=4, by={EVERY})"}),
    "cacheblend": (0.15, {"encode": "Alone()", "select": KEYS}),
    "cacheblend-v": (0.15, {"encode": "Alone()", "select": "KeyDeviation(layer=1, of='value')"}),
    "cacheblend-gradual": (
        0.15,
        {"encode": "Alone()", "select": KEYS, "schedule": "ProgressivePruning(spread=0.5, by='deviation')"},
    ),
    "droidspeak": (
        0.15,
        {"encode": "Activations(of=Alone(), layer=0.5)", "select": KEYS, "schedule": "Reselect(layer=0.5)"},
    ),
    "psr": (0.15, {"encode": "Sink(tokens=4)", "select": KEYS, "attend": "Scaled(temperature=0.9, scale=0.9)"}),
    "cacheclip": (
        0.2,
        {
            "encode": "Prefixed()",
            "select": "Grouped(inner=Auxiliary(model='sibling', layers='last', reduce='mean'), window=8, stride=4)",
        },
    ),
    "prophetkv": (0.2, {"encode": "Alone()", "select": EVERY}),
    "qcfuse": (0.5, {"encode": "Alone()", "select": CRITICAL}),
    "infoflow": (
        0.15,
        {"encode": "Alone()", "select": RETRIEVAL, "layout": f"BestLast(by={RETRIEVAL}, share=0.15)"},
    ),
    "infoflow-in-order": (0.15, {"encode": "Alone()", "select": RETRIEVAL}),
    "fusionrag": (0.15, {"encode": FUSED, "select": LAST}),
    "psr-fused": (0.15, {"encode": FUSED, "select": LAST, "attend": "Scaled(temperature=0.95, scale=1.0)"}),
    "in-document": (0.15, {"encode": "InDocument(window=2048)", "select": EVERY}),
    "behind-document": (
        0.15,
        {"encode": "InDocument(window=2048)", "select": EVERY, "schedule": "BehindDocument()"},
    ),
    "auto": (0.05, {"encode": "InDocument(window=2048)", "select": EVERY}),
    "cachecraft": (
        0.3,
        {
            "encode": "Harvested(variants=4, overlap=0.5)",
            "select": "InterAttention()",
            "schedule": "CacheFix(scale=2.0)",
        },
    ),
    "ragcache": (
        None,
        {
            "encode": "PrefixTree(memory_bytes=536870912, disk_bytes=8589934592)",
            "layout": "LongestPath(reorder=False)",
        },
    ),
    "turborag": (0.0, {"encode": "Alone()", "select": EVERY}),
    "turborag-composite": (0.0, {"encode": "Alone()", "select": EVERY, "layout": "Overlapped()"}),
    "block-attention": (0.0, {"encode": "Alone()", "select": EVERY}),
    "kvlink": (0.0, {"encode": "Alone()", "select": EVERY, "layout": "Linked()"}),
}
#: What they load is kept from earlier prompts, so their derivations stand beside those (`test_harvested.py` and
#: `test_prefix_tree.py` in tests/encode).
KEPT_FROM_PROMPTS = ("cachecraft", "ragcache")
#: They take a model that was tuned for them, whose adapter and link tokens are files: see `test_tuned_rows.py`.
TUNED = {"turborag": "turborag", "turborag-composite": "turborag-composite", "block-attention": "block-attention",
         "kvlink": "kvlink"}  # fmt: skip

Make = Callable[[Corpus, int], Made]
Scores = Callable[[Stitched], Tensor]


@dataclass(frozen=True)
class Stage:
    """An index of `DOCUMENTS`, each chunk encoded for every row, and what a derivation needs to know of it."""

    engine: Engine
    corpus: Corpus
    names: Sequence[str]

    def prefill(self, row: Method, share: float | None = None) -> Prefilled:
        """The engine's own."""
        if row.encode is not None:
            list(self.engine.index.encode(row.encode, neighbours=self.neighbours))
        chunks = self.engine.index.chunks([self.names[number] for number in RETRIEVED])
        return self.engine.prefill(QUESTION, chunks, method=row, recompute=share)

    def neighbours(self, chunk: str, count: int) -> list[str]:
        """As `Corpus.neighbours`, by name."""
        return [self.names[number] for number in self.corpus.neighbours(self.names.index(chunk), count)]

    def stitched(self, make: Make, numbers: Sequence[int] = RETRIEVED, *, overlapped: bool = False) -> Stitched:
        """The prompt of these chunks, all at the same positions if asked for, and its KV."""
        index = self.engine.index
        segments = [index.template.chunk(TEXTS[number], self.names[number]) for number in numbers]
        prompt = index.template.prompt(segments, QUESTION, prefix=index.prefix_segment)
        if overlapped:
            first, longest = len(prompt.segments[0]), max(map(len, segments))
            end = first + longest
            behind = (end, end + len(prompt.segments[prompt.question]))
            prompt = replace(prompt, positions=(0, *[first] * len(segments), *behind))
        return stitch(self.corpus, prompt, numbers, make)

    def logits(self, stitched: Stitched, chosen: Any, kv: KV | None = None, **options: Any) -> Tensor:
        """Chosen tokens and all fresh text through every layer, against what is reused; `chosen` may be by layer."""
        everything = []
        for key, value in kv or stitched.kv:
            room = torch.zeros(key.shape[0], len(stitched.fresh), key.shape[2])
            everything.append((torch.cat([key, room], 1), torch.cat([value, room], 1)))

        def rows(layer: int) -> Tensor:
            here = chosen(layer) if callable(chosen) else chosen
            return torch.cat([here, stitched.fresh]).sort().values

        return dense(self.engine.reader, stitched.prompt, everything, rows, **options)


NONE = torch.empty(0, dtype=torch.int64)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    reader = tiny_reader("llama", **SIZES)
    with Index(tmp_path_factory.mktemp("derivations"), reader) as index:
        for number, document in enumerate(DOCUMENTS):
            index.put(f"doc{number}", "", [(text, n, n + 1) for n, text in enumerate(document)], {})
        rows = {row.text: row for row in index.catalog.all_chunks()}
        found = [rows[text] for text in TEXTS]
        [newline] = reader.tokenizer("\n", add_special_tokens=False)["input_ids"]
        corpus = Corpus(index.prefix_segment.token_ids, tuple(row.token_ids for row in found), newline)
        yield Stage(Engine(reader, index), corpus, [row.id for row in found])


def assert_same(ours: Prefilled, prompt: Prompt, chosen: Tensor, logits: Tensor) -> None:
    """The same chunks in the same order at the same positions, the same tokens recomputed, and the same logits."""
    assert ours.prompt.token_ids == prompt.token_ids
    assert tuple(ours.prompt.starts) == tuple(prompt.starts)
    assert ours.recomputed.nonzero().squeeze(1).tolist() == chosen.tolist()
    torch.testing.assert_close(ours.logits, logits, **CLOSE)


def check_choice(stage: Stage, name: str, make: Make, scores: Scores) -> Stitched:
    """A row that recomputes what scores best, in all layers, under plain attention, in the order of retrieval."""
    row = METHODS[name]
    ours, stitched = stage.prefill(row), stage.stitched(make)
    chosen = stitched.best(scores(stitched), AXES_OF[name][0] or 0)
    assert 0 < len(chosen) < len(stitched.selectable)
    assert_same(ours, stitched.prompt, chosen, stage.logits(stitched, chosen))
    return stitched


def check_fixed(stage: Stage, name: str, make: Make) -> None:
    """A row that recomputes nothing, under plain attention."""
    stitched = stage.stitched(make)
    assert_same(stage.prefill(METHODS[name]), stitched.prompt, NONE, stage.logits(stitched, NONE))


@pytest.mark.parametrize("row", METHODS.values(), ids=lambda row: row.name)
def test_a_row_is_set_as_its_paper_has_it(row: Method) -> None:
    share, axes = AXES_OF[row.name]
    shown = row.as_dict()
    assert row.recompute == share
    assert {axis: shown[axis] for axis in AXES} == PLAIN | axes


def test_every_row_has_a_derivation_here() -> None:
    tested = [name.removeprefix("test_row_").replace("_", "-") for name in globals() if name.startswith("test_row_")]
    assert sorted((*tested, *KEPT_FROM_PROMPTS, *TUNED)) == sorted(AXES_OF) == sorted(METHODS)


def test_a_row_takes_the_model_that_its_paper_tunes_and_no_other_row_takes_one() -> None:
    assert {name: row.finetuned for name, row in METHODS.items() if row.finetuned} == TUNED


def test_row_full(stage: Stage) -> None:
    stitched = stage.stitched(alone)
    _, _, logits = forward(stock(), stitched.prompt.token_ids, torch.arange(len(stitched.prompt)))
    assert_same(stage.prefill(METHODS["full"]), stitched.prompt, NONE, logits)


def test_row_prefix(stage: Stage) -> None:
    ours, stitched = stage.prefill(METHODS["prefix"]), stage.stitched(behind_prefix)
    _, _, logits = forward(stock(), stitched.prompt.token_ids, torch.arange(len(stitched.prompt)))
    assert_same(ours, stitched.prompt, NONE, logits)
    assert [chunk.cache for chunk in ours.report.chunks] == ["exact", *["miss"] * 5]


def test_row_naive(stage: Stage) -> None:
    check_fixed(stage, "naive", alone)


def test_row_random(stage: Stage) -> None:
    """Which tokens is nobody's to derive: as many as the budget says, the same ones again, in no kind of order."""
    ours, stitched = stage.prefill(METHODS["random"]), stage.stitched(alone)
    chosen = ours.recomputed.nonzero().squeeze(1)
    assert len(chosen) == round(0.15 * len(stitched.selectable))
    assert set(chosen.tolist()) <= set(stitched.selectable.tolist())
    middle = len(stitched.selectable) // 2
    assert 0.2 < torch.isin(chosen, stitched.selectable[:middle]).float().mean() < 0.8
    offsets = [(slot - span.start) / len(range(span.start, span.stop)) for span in stitched.spans
               for slot in chosen.tolist() if span.start <= slot < span.stop]  # fmt: skip
    assert 0.35 < sum(offsets) / len(offsets) < 0.65
    assert torch.equal(stage.prefill(METHODS["random"]).recomputed, ours.recomputed)
    assert_same(ours, stitched.prompt, chosen, stage.logits(stitched, chosen))


def test_row_epic(stage: Stage) -> None:
    def earlier_in_their_chunk(stitched: Stitched) -> Tensor:
        scores = torch.zeros(len(stitched.prompt))
        for span in stitched.spans:
            scores[span] = -torch.arange(span.stop - span.start, dtype=torch.float32)
        return scores

    check_choice(stage, "epic", alone, earlier_in_their_chunk)


def test_row_link0(stage: Stage) -> None:
    check_fixed(stage, "link0", behind_line_ends)


def test_row_ape(stage: Stage) -> None:
    stitched = stage.stitched(behind_prefix, overlapped=True)
    chunks = torch.cat([torch.arange(span.start, span.stop) for span in stitched.spans])
    logits = stage.logits(stitched, NONE, attend=scaled(0.9, 0.9, lambda layer: chunks))
    assert_same(stage.prefill(METHODS["ape"]), stitched.prompt, NONE, logits)


def test_row_sel(stage: Stage) -> None:
    stitched = stage.stitched(behind_prefix)
    scores = attention(stitched, ALL, "mean")
    worst = sorted(stitched.spans, key=lambda span: float(scores[span].sum()))[:2]
    out = torch.cat([torch.arange(span.start, span.stop) for span in worst])
    assert_same(stage.prefill(METHODS["sel"]), stitched.prompt, NONE, stage.logits(stitched, NONE, attend=masked(out)))


def fresh_below(stitched: Stitched, layers: int) -> KV:
    """Its KV with the first layers of a full prefill."""
    return [*stitched.full()[:layers], *stitched.kv[layers:]]


def check_deviation(stage: Stage, name: str, make: Make, of: int, **options: Any) -> None:
    """CacheBlend's choice: layers 0 and 1 are fresh for every token, and the tokens that deviate most go on."""
    stitched = stage.stitched(make)
    chosen = stitched.best(deviation(stitched, of), 0.15)
    if "attend" in options:
        options["attend"] = options["attend"](stitched, chosen)
    logits = stage.logits(stitched, chosen, fresh_below(stitched, 2), **options)
    ours = stage.prefill(METHODS[name])
    assert_same(ours, stitched.prompt, chosen, logits)
    assert ours.report.charged == pytest.approx((2 + 30 * len(chosen) / len(stitched.selectable)) / LAYERS)


def test_row_cacheblend(stage: Stage) -> None:
    check_deviation(stage, "cacheblend", alone, 0)


def test_row_cacheblend_v(stage: Stage) -> None:
    check_deviation(stage, "cacheblend-v", alone, 1)


def test_row_psr(stage: Stage) -> None:
    def attend(stitched: Stitched, chosen: Tensor) -> Any:
        reused = stitched.selectable[~torch.isin(stitched.selectable, chosen)]
        return scaled(0.9, 0.9, lambda layer: NONE if layer < 2 else reused)

    check_deviation(stage, "psr", behind_line_ends, 0, attend=attend)


def test_row_cacheblend_gradual(stage: Stage) -> None:
    """Layer by layer fewer, and those stay whose keys moved most in the layer before."""
    stitched = stage.stitched(alone)
    shares = [0.15 * (1.5 - max(0, layer - 2) / (LAYERS - 3)) for layer in ALL]
    assert sum(shares[2:]) / (LAYERS - 2) == pytest.approx(0.15)
    counts = [round(share * len(stitched.selectable)) for share in shares]
    moved = {1: deviation(stitched, 0)}
    left = {layer: stitched.best(moved[1], shares[0]) for layer in range(3)}

    def look(layer: int, hidden: Tensor, key: Tensor) -> None:
        if layer > 1:
            moved[layer] = (key[:, : len(moved[1])] - stitched.kv[layer][0]).pow(2).sum((0, 2))

    def rows(layer: int) -> Tensor:
        if layer not in left:
            before = left[layer - 1]
            order = moved[layer - 1][before].argsort(descending=True, stable=True)
            left[layer] = before[order[: counts[layer]]].sort().values
        return left[layer]

    ours = stage.prefill(METHODS["cacheblend-gradual"])
    logits = stage.logits(stitched, rows, fresh_below(stitched, 2), look=look)
    assert_same(ours, stitched.prompt, left[0], logits)
    assert len(left[LAYERS - 1]) < len(left[0]) / 2


def test_row_droidspeak(stage: Stage) -> None:
    """Up to layer 16 as CacheBlend; there all others come back as they were when their chunk was read alone."""
    stitched, middle = stage.stitched(alone), LAYERS // 2
    first = stitched.best(deviation(stitched, 0), 0.15)
    states = torch.zeros(len(stitched.prompt), SIZES["hidden_size"])
    for span in stitched.spans:
        ids = torch.tensor([stitched.prompt.token_ids[span]])
        with torch.no_grad():
            states[span] = stock()(input_ids=ids, output_hidden_states=True).hidden_states[middle][0]
    second: list[Tensor] = []

    def look(layer: int, hidden: Tensor, key: Tensor) -> None:
        if layer == middle + 1:
            cached = stitched.kv[layer][0]
            second.append(stitched.best((key[:, : cached.shape[1]] - cached).pow(2).sum((0, 2)), 0.15))

    def rows(layer: int) -> Tensor:
        return first if layer < middle else stitched.selectable if layer <= middle + 1 else second[0]

    ours = stage.prefill(METHODS["droidspeak"])
    logits = stage.logits(stitched, rows, fresh_below(stitched, 2), states={middle: states}, look=look)
    assert_same(ours, stitched.prompt, torch.cat([first, second[0]]).unique(), logits)


def test_row_cacheclip(stage: Stage) -> None:
    """With another model of the primary's kind in the sibling's place."""
    small = Reader(stock(7), byte_tokenizer(), name="small")
    ours, stitched = stage.prefill(METHODS["cacheclip"].with_auxiliary(small)), stage.stitched(behind_prefix)
    chosen = stitched.best(auxiliary(stock(7), stitched), 0.2)
    assert_same(ours, stitched.prompt, chosen, stage.logits(stitched, chosen))


def test_row_prophetkv(stage: Stage) -> None:
    check_choice(stage, "prophetkv", alone, lambda stitched: attention(stitched, ALL, "mean"))


def test_row_qcfuse(stage: Stage) -> None:
    check_choice(stage, "qcfuse", alone, lambda stitched: attention(stitched, (13, 14, 17), "max"))


def test_row_infoflow(stage: Stage) -> None:
    """The chunk that has most of what the question attends to stands last, and the choice is made in that order."""
    order = densest_last(stage.stitched(alone, overlapped=True))
    assert order != sorted(order)
    stitched = stage.stitched(alone, [RETRIEVED[place] for place in order])
    chosen = stitched.best(attention(stitched, range(22, 26), "norm"), 0.15)
    assert_same(stage.prefill(METHODS["infoflow"]), stitched.prompt, chosen, stage.logits(stitched, chosen))


def test_row_infoflow_in_order(stage: Stage) -> None:
    check_choice(stage, "infoflow-in-order", alone, lambda stitched: attention(stitched, range(22, 26), "norm"))


def test_row_fusionrag(stage: Stage) -> None:
    check_choice(stage, "fusionrag", behind_neighbours, lambda stitched: attention(stitched, (-1,), "sum"))


def test_row_psr_fused(stage: Stage) -> None:
    stitched = stage.stitched(behind_neighbours)
    chosen = stitched.best(attention(stitched, (-1,), "sum"), 0.15)
    reused = stitched.selectable[~torch.isin(stitched.selectable, chosen)]
    logits = stage.logits(stitched, chosen, attend=scaled(0.95, 1.0, lambda layer: reused))
    assert_same(stage.prefill(METHODS["psr-fused"]), stitched.prompt, chosen, logits)


def test_row_in_document(stage: Stage) -> None:
    check_choice(stage, "in-document", in_document, lambda stitched: attention(stitched, ALL, "mean"))


def test_row_behind_document(stage: Stage) -> None:
    ours, stitched = stage.prefill(METHODS["behind-document"]), stage.stitched(in_document)
    chosen = stitched.best(attention(stitched, ALL, "mean"), 0.15)
    mended = beside_document(stage.corpus, stitched, chosen)
    fresh = [stitched.prompt.token_ids[slot] for slot in stitched.fresh]
    _, _, logits = forward(stock(), fresh, stitched.positions[stitched.fresh], mended)
    assert_same(ours, stitched.prompt, chosen, logits)
    assert not torch.allclose(logits, stage.logits(stitched, chosen), **CLOSE), "the documents should matter"


def test_row_auto(stage: Stage) -> None:
    check_choice(stage, "auto", in_document, lambda stitched: attention(stitched, ALL, "mean"))
    stitched = stage.stitched(in_document)
    asked = stage.prefill(METHODS["auto"], 0.0)
    assert_same(asked, stitched.prompt, NONE, stage.logits(stitched, NONE))


def test_plain_attention_is_what_a_score_mod_of_one_and_one_gives(stage: Stage) -> None:
    """The derivation's own formula, held to what it must be."""
    stitched = stage.stitched(alone)
    one = stage.logits(stitched, NONE, attend=scaled(1.0, 1.0, lambda layer: stitched.selectable))
    torch.testing.assert_close(one, stage.logits(stitched, NONE, attend=plain), **CLOSE)
