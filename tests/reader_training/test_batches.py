import random
from itertools import pairwise

import pytest
import torch
from ragcache_bench.questions.families import BINDINGS
from ragcache_bench.questions.worlds import World, make_context
from reader_training.batches import Encoder, Questions, collate, make_row, repeat_batch
from reader_training.curriculum import FIRST_MIXED, LEVELS
from reader_training.tokens import build_tokenizer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def encode():
    return Encoder(build_tokenizer(600))


def _seen(encode, reach):
    context = make_context(random.Random(5), LEVELS[4])
    batch = collate([make_row(random.Random(5), encode, context, 0.0, reach, 4)])
    return batch, batch.bias()[0, 0] == 0


def test_questions_see_the_context_but_not_each_other(encode):
    batch, seen = _seen(encode, "full")
    segment = batch.segment[0]
    first, second = (segment == 10_000).nonzero()[-1, 0], (segment == 10_001).nonzero()[-1, 0]
    context = segment < 10_000
    assert seen[first, context].all()
    assert seen[second, context].all()
    assert not seen[second, segment == 10_000].any()
    assert batch.position[0, (segment == 10_001).nonzero()[0, 0]] == context.sum()


@pytest.mark.parametrize(("reach", "prefix"), [("prefixed", True), ("alone", False)])
def test_a_separate_chunk_sees_itself_and_at_most_the_prefix(encode, reach, prefix):
    batch, seen = _seen(encode, reach)
    segment = batch.segment[0]
    last = (segment == 3).nonzero()[-1, 0]
    assert seen[last, segment == 3].all()
    assert seen[last, segment == 0].all() == prefix
    assert not seen[last, (segment == 1) | (segment == 2)].any()
    assert seen[(segment == 10_000).nonzero()[-1, 0], segment < 10_000].all()


def test_labels_are_the_answers_and_their_end(encode):
    context = make_context(random.Random(5), LEVELS[4])
    row = make_row(random.Random(5), encode, context, 0.0, "full", 1)
    labelled = [i for i, label in zip(row.ids, row.label, strict=True) if label]
    assert labelled == [*encode([" " + context.questions[0].reply])[0], encode.end]


@pytest.mark.parametrize("family", ["sections", "pronouns", "labels"])
@pytest.mark.parametrize("twin", [False, True])
def test_whose_a_value_is_is_noted_from_the_words_for_the_name_up_to_the_value(encode, family, twin):
    world = World(random.Random(4), LEVELS[FIRST_MIXED + 2])
    BINDINGS[family](world, twin)
    context = world.finish([world.ask(fact) for fact in world.facts])
    asked = {(q.gold[-1], name) for q in context.questions for *_, name in context.meant if name in q.text}
    assert {(chunk, name) for chunk, *_, name in context.meant} == asked
    for chunk, words, said, name in context.meant:
        text = context.chunks[chunk]
        values = [q.answer for q in context.questions if q.gold[-1] == chunk and name in q.text]
        assert any(text[said:].strip().startswith(value) for value in values)
        assert text[:words].endswith(name) or not twin or family == "sections"
        assert words <= said
    row = make_row(random.Random(5), encode, context, 0.0, "full", 1)
    firsts = {ids[0] for ids in encode([" " + name for *_, name in context.meant])}
    assert firsts <= {token for _, token in row.meant}
    assert all(row.segment[at] > 0 for at, _ in row.meant)
    assert bool(make_row(random.Random(5), encode, context, 0.0, "alone", 1).meant) == twin


def test_batches_hold_about_the_asked_number_of_tokens(encode):
    stream = Questions(encode, random.Random(0), 2048)
    for _ in range(5):
        batch = stream.next(LEVELS, 4)
        assert batch.ids.numel() <= max(2048, batch.ids.shape[1])


def test_repeat_batches_can_be_predicted_from_their_first_half(encode):
    batch = repeat_batch(random.Random(0), 500, 512)
    row, label = batch.ids[0].tolist(), batch.label[0].tolist()
    pairs = set(pairwise(row[: len(row) // 2 + 7]))
    assert all((row[i - 1], row[i]) in pairs for i, wanted in enumerate(label) if wanted)
    assert torch.equal(batch.bias()[0, 0] == 0, torch.ones(len(row), len(row), dtype=torch.bool).tril())
