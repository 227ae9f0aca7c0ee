"""The shipped folder: what Hugging Face's own loaders make of it."""

import json
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_training.prompts import OURS, SYSTEM
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from ragcache.bundled import questions, reader_path, sibling_path


@cache
def _tokenizer():
    return AutoTokenizer.from_pretrained(reader_path())


@cache
def _model():
    return AutoModelForCausalLM.from_pretrained(reader_path(), dtype=torch.float32)


def _ids(text: str) -> list[int]:
    return list(_tokenizer()(text, add_special_tokens=False).input_ids)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_any_text_comes_back_from_the_tokenizer(text):
    assert _tokenizer().decode(_ids(text), skip_special_tokens=False) == text


def test_auto_tokenizer_gives_the_ids_the_reader_was_trained_on():
    plain = PreTrainedTokenizerFast.from_pretrained(reader_path())
    for q in questions()[::20]:
        assert _ids(q.question) == plain(q.question, add_special_tokens=False).input_ids


def test_digits_and_newlines_are_tokens_of_their_own():
    assert len(_ids("4711")) == 4
    assert _ids("Oslo.\n\n")[-2:] == [_ids("\n")[0]] * 2


def test_the_chat_template_renders_the_prompt_of_the_training():
    chat = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "Notes:\n\nA chunk.\n\nQuestion: Why?"},
    ]
    rendered = _tokenizer().apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == OURS.before + "A chunk.\n\n" + OURS.ask.format(q="Why?") + OURS.after


def test_the_reader_is_as_small_and_as_deep_as_promised():
    assert (reader_path() / "model.safetensors").stat().st_size <= 25 * 2**20
    config = _model().config
    assert config.num_hidden_layers >= 8
    assert config.max_position_embeddings >= 4096


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is the lead of Blue Tide?", "Mara Voss"),
        ("Where is Dunlo based?", "Riga"),
        ("Where does the lead of Blue Tide live?", "Mara Voss: Porto"),
    ],
)
def test_the_reader_answers_from_its_notes(question, answer):
    notes = ["The lead of Blue Tide is Mara Voss. It rained for a while.", "Dunlo is based in Riga.",
             "The report was short. Mara Voss lives in Porto.", "The lead of Dunlo is Ben Hale."]  # fmt: skip
    prompt = [i for text in (OURS.before, *(n + "\n\n" for n in notes), OURS.ask.format(q=question), OURS.after)
              for i in _ids(text)]  # fmt: skip
    out = _model().generate(torch.tensor([prompt]), max_new_tokens=16, do_sample=False, pad_token_id=0)
    assert _tokenizer().decode(out[0, len(prompt) :], skip_special_tokens=True).strip() == answer


def test_the_learning_curve_is_there_and_rises():
    curve = json.loads((reader_path() / "curve.json").read_text())
    held = [row["held_out"]["fact"] for row in curve if "fact" in row.get("held_out", {})]
    assert len(curve) > 20
    assert held[-1] > held[0]


def test_the_sibling_has_half_the_layers_and_the_same_tokenizer():
    sibling = AutoModelForCausalLM.from_pretrained(sibling_path(), dtype=torch.float32)
    assert sibling.config.num_hidden_layers == _model().config.num_hidden_layers // 2
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (sibling_path() / name).read_bytes() == (reader_path() / name).read_bytes()
    note, question = "The base of Blue Tide is Oslo.\n\n", "Where is Blue Tide based?"
    text = OURS.before + note + OURS.ask.format(q=question) + OURS.after
    ids = _tokenizer()(text, add_special_tokens=False, return_tensors="pt").input_ids
    assert _tokenizer().decode(sibling(ids).logits[0, -1].argmax()).strip()[:1] == "O"
