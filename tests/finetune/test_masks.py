"""Training sees what answering sees: masks and positions derived once more, and the engine's own logits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import byte_tokenizer, tiny_reader

from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.layout import Overlapped
from ragcache.method import Method
from ragcache.methods import METHODS

pytest.importorskip("peft")

from ragcache_finetune import attention
from ragcache_finetune.contexts import Asked, Context
from ragcache_finetune.layout import Sample, SampleLayout
from ragcache_finetune.masks import collate, visible
from ragcache_finetune.recipes import RECIPES, find_recipe

CHUNKS = ("The Tide project is led by Mara Voss.", "It is based in Kelmar.", "The mill grinds rye, and little else.")
CONTEXT = Context(CHUNKS, (Asked("Who leads it?", ("Mara Voss", "Voss")), Asked("Where?", ("Kelmar",))))


def made(recipe: str, *, independent: bool = True, links: int | None = None) -> Sample:
    layout = SampleLayout(byte_tokenizer(), find_recipe(recipe, links))
    return layout.sample(CONTEXT, independent=independent)


def sees(sample: Sample, row: int, column: int) -> bool:
    """One pair of tokens, by the papers' words."""
    if column > row:
        return False
    if sample.branch[column] and sample.branch[column] != sample.branch[row]:
        return False  # another question
    if not sample.independent or not sample.chunk[row]:
        return True
    return sample.chunk[column] == sample.chunk[row]


@pytest.mark.parametrize("independent", [True, False])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_mask_is_what_a_loop_over_pairs_of_tokens_says(recipe: str, independent: bool) -> None:
    sample = made(recipe, independent=independent)
    count = len(sample.ids)
    expected = [[sees(sample, row, column) for column in range(count)] for row in range(count)]
    assert visible(sample).tolist() == expected


def test_the_prompt_is_ours_and_each_answer_stands_behind_its_question() -> None:
    layout = SampleLayout(byte_tokenizer(), RECIPES["turborag"])
    sample = layout.sample(CONTEXT, independent=True)
    for number, asked in enumerate(CONTEXT.asked, 1):
        rows = [i for i, branch in enumerate(sample.branch) if branch in (0, number)]
        segments = [layout.template.chunk(text, text) for text in CHUNKS]
        prompt = layout.template.prompt(segments, asked.question)
        said = [sample.ids[i] for i in rows if sample.answer[i]]
        assert [sample.ids[i] for i in rows if not sample.answer[i]] == list(prompt.token_ids)
        assert byte_tokenizer().decode(said) == f"{asked.answers[0]}<|end|>"
        assert [sample.positions[i] for i in rows] == list(range(len(rows)))


def test_composite_positions_begin_again_with_each_chunk_and_go_on_behind_the_longest() -> None:
    sample = made("turborag-composite")
    first = sample.chunk.index(1)
    lengths = [sample.chunk.count(number) for number in (1, 2, 3)]
    expected = [*range(first), *(first + i for length in lengths for i in range(length))]
    behind = first + max(lengths)
    for number in (1, 2):
        expected += range(behind, behind + sample.branch.count(number))
    assert sample.positions == expected


@pytest.mark.parametrize("links", [0, 1, 5])
def test_link_tokens_stand_behind_each_chunk_take_positions_and_see_all_before_them(links: int) -> None:
    sample = made("kvlink", links=links)
    rows = [i for i, link in enumerate(sample.link) if link >= 0]
    assert [sample.link[i] for i in rows] == list(range(3 * links))
    assert sample.positions[: sample.branch.index(1)] == list(range(sample.branch.index(1)))
    for number in range(3 * links):
        row, chunk = rows[number], number // links + 1
        assert sample.chunk[row] == 0
        assert visible(sample)[row].tolist() == [column <= row for column in range(len(sample.ids))]
        assert sample.chunk[row - number % links - 1] == chunk


@pytest.mark.parametrize(
    ("recipe", "method"),
    [
        ("turborag", METHODS["naive"]),
        ("turborag-composite", Method("composite", Alone(), layout=Overlapped())),
        ("full", METHODS["full"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_training_and_answering_see_the_same(tmp_path: Path, architecture: str, recipe: str, method: Method) -> None:
    reader = tiny_reader(architecture)
    layout = SampleLayout(reader.tokenizer, RECIPES[recipe])
    sample = layout.sample(CONTEXT, independent=recipe != "full")
    inputs = collate([replace(sample)], torch.float32)
    with Index(tmp_path / "index", reader) as index:
        index.put("one", "", [(text, n, n + 1) for n, text in enumerate(CHUNKS)], {})
        rows = {row.text: row for row in index.catalog.all_chunks()}
        chunks = index.chunks([rows[text].id for text in CHUNKS])
        if method.encode is not None:
            list(index.encode(method.encode))
        engine = Engine(reader, index)
        found = [engine.prefill(asked.question, chunks, method=method).logits for asked in CONTEXT.asked]
    reader.model.set_attn_implementation(attention.NAME)
    del inputs["labels"], inputs["link"]
    with torch.no_grad():
        logits = reader.model(**inputs).logits[0]  # (answer tokens, vocabulary)
    answers = [sum(sample.answer[i] for i, of in enumerate(sample.branch) if of == number) for number in (1, 2)]
    for ours, theirs in zip((logits[0], logits[answers[0]]), found, strict=True):
        assert (ours - theirs).abs().max() <= 1e-4
