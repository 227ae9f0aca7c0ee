import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from ragcache_bench.questions.lexicon import PLAIN
from ragcache_bench.questions.relations import BY_SUBJECT
from ragcache_bench.tasks.independent.relations import KINDS
from reader_training import wide
from reader_training.batches import Encoder, Questions
from reader_training.contexts import Contexts
from reader_training.passages import Material, Part, Passage
from reader_training.tokens import SPECIAL, shorten_tokenizer
from reader_training.trainer import WORDS_RATE, Settings, Trainer
from reader_training.wide import LEXICON, WIDE_LEVELS, draw_mixed
from transformers import PreTrainedTokenizerFast

from ragcache import bundled

TEXT = "The Corven Institute was founded on 12 March 2021.\n\nIts budget: 4,500 \u20ac, na\u00efve."


@pytest.fixture(scope="module")
def whole() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(bundled.reader_path())


def test_a_shortened_tokenizer_keeps_the_first_entries_and_any_text(whole: PreTrainedTokenizerFast) -> None:
    short, kept = shorten_tokenizer(whole, 900)
    assert len(short) == 900 == len(SPECIAL) + len(kept)
    for ours, theirs in enumerate(kept, len(SPECIAL)):
        assert short.convert_ids_to_tokens(ours) == whole.convert_ids_to_tokens(theirs)
    ids = short.encode(TEXT, add_special_tokens=False)
    assert short.decode(ids) == TEXT
    assert len(ids) > len(whole.encode(TEXT, add_special_tokens=False))
    assert short.encode("<|end|>") == whole.encode("<|end|>") == [2]
    same, _ = shorten_tokenizer(whole, len(whole))
    assert same.encode(TEXT) == whole.encode(TEXT)


def test_answers_stand_in_the_notes_and_every_draw_is_the_same_again() -> None:
    for number in range(60):
        level = WIDE_LEVELS[number % len(WIDE_LEVELS)]
        context = draw_mixed(random.Random(number), level)
        assert context == draw_mixed(random.Random(number), level)
        text = "\n".join(context.chunks)
        for question in context.questions:
            if question.family in ("fact", "section", "twin", "pronoun", "label"):
                assert question.answer in text, question


def test_names_and_wordings_are_many() -> None:
    rng = random.Random(5)
    contexts = [draw_mixed(rng, WIDE_LEVELS[2]) for _ in range(150)]
    asked = {question.text for context in contexts for question in context.questions}
    assert len({text.split()[0] for text in asked}) > 12
    starts = [chunk.partition("\n")[0] for context in contexts for chunk in context.chunks]
    assert any(line.startswith("Title: ") for line in starts)
    assert any(line.startswith("## ") for line in starts)
    kinds = {fact.subject for kind in LEXICON.kinds for fact in LEXICON.relations[kind]}
    assert len(kinds) > 100


def test_a_lexicon_invents_only_where_it_is_told_to() -> None:
    plain = PLAIN.some(random.Random(1), "project", 3)
    assert plain == random.Random(1).sample(BY_SUBJECT["project"], 3)
    always = replace(LEXICON, invented=1.0)
    known = {relation.name for rows in LEXICON.relations.values() for relation in rows}
    assert not known & {one.name for one in always.some(random.Random(1), "museum", 2)}
    assert LEXICON.some(random.Random(1), "museum", 99)


def test_public_passages_come_in_between_and_never_in_held_out_contexts() -> None:
    passage = Passage("Tide", "Anna Quill leads the Tide.", (("Who leads the Tide?", ("Anna Quill", "Quill")),))
    part = Part([[passage]], [passage])
    material, rng = Material(part, Part(), Part(), (passage,)), random.Random(2)
    contexts = Contexts(material, worlds=False)
    drawn = [draw_mixed(rng, WIDE_LEVELS[-1], public=contexts) for _ in range(150)]
    public = [context for context in drawn if any(one.family == "public" for one in context.questions)]
    assert 4 <= len(public) <= 30
    assert {question.answer for context in public for question in context.questions} == {"Quill"}
    held = [draw_mixed(rng, WIDE_LEVELS[-1], True, public=contexts) for _ in range(60)]
    assert not any(one.family == "public" for context in held for one in context.questions)


def test_a_reader_that_never_meets_a_cut_border_reads_everything_in_full(whole: PreTrainedTokenizerFast) -> None:
    for apart in (True, False):
        questions = Questions(Encoder(whole), random.Random(1), 2048, 0.5, apart, draw_mixed)
        batches = [questions.next(WIDE_LEVELS, 2) for _ in range(12)]
        assert all(bool(batch.full.all()) for batch in batches) is apart


def test_a_wide_reader_trains_from_another_model_s_words_and_learns_them_slowly(tmp_path: Path) -> None:
    settings = Settings(
        minutes=0.02, tokens=512, vocabulary=700, shape="qwen3", wide=True, words=bundled.reader_path(), whole=True
    )
    first = Trainer(tmp_path, replace(settings, shape="deep"))
    words = first.weights["model.embed_tokens.weight"]
    assert words.shape == (700, 160)
    assert words[len(SPECIAL) :].std().item() == pytest.approx(0.06, rel=0.01)
    first.run()
    assert [group["share"] for group in first.adam.param_groups] == [WORDS_RATE, 1.0]
    assert (tmp_path / "reader" / "config.json").exists()
    again = Trainer(tmp_path, replace(settings, shape="deep"))
    assert torch.equal(again.weights["model.embed_tokens.weight"], words)
    assert wide.WIDE_LEVELS is again.levels


def test_no_examined_wording_is_trained_on() -> None:
    examined = {wide._bare(way) for kind in KINDS for relation in kind.relations for way in relation.wordings}
    for lexicon in (LEXICON, wide._OTHER_NAMES):
        rows = [relation for kind in lexicon.relations.values() for relation in kind]
        ways = [way for one in rows for way in (*one.says, *one.it, *one.asks)]
        seen = [way for way in ways if wide._bare(way) in examined]
        assert len(seen) < 12  # of the plain bank, where nothing else says the same
        assert lexicon is not LEXICON or not seen


def test_what_stays_hard_for_good_holds_no_level_back(tmp_path: Path) -> None:
    settings = Settings(tokens=512, vocabulary=700, wide=True, words=bundled.reader_path(), level=99)
    trainer = Trainer(tmp_path, settings)
    trainer.progress.level, trainer.progress.step, trainer.progress.since = 2, 500, 0
    trainer.progress.match = {"fact": 0.9, "section": 0.9, "public": 0.4}
    trainer._advance()
    assert trainer.progress.level == 3
    trainer.export(tmp_path / "reader")
    again = Trainer(tmp_path / "more", replace(settings, start=tmp_path / "reader"))
    assert again.progress.level == len(WIDE_LEVELS) - 1
