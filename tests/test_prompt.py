"""Prompts as token ids: every kind of chat template, documents that try to be markup, and the arithmetic of slots."""

from typing import Any

import pytest
from conftest import SPECIAL, byte_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers.processors import TemplateProcessing

from ragcache.errors import UnsupportedModel
from ragcache.prompt import BEFORE_QUESTION, SYSTEM, Prompt, Segment, Template

LOOP = "{% for m in messages %}<|{{ m.role }}|>{{ m.content BODY }}<|end|>{% endfor %}"
PLAIN = LOOP.replace(" BODY", "")
REPLY = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
DATED = "{{ bos_token }}<|system|>Today is {{ strftime_now('%d %b %Y') }}.<|end|>" + PLAIN + REPLY
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
DROPS_SYSTEM = "{% for m in messages if m.role != 'system' %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}" + REPLY
TRIMS = LOOP.replace("BODY", "| trim") + REPLY
THINKS = (
    PLAIN
    + "{% if add_generation_prompt %}<|assistant|>"
    + "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
MARKUP = [*SPECIAL, "<think>", "assistant", "<tool_call>"]


def tokenizer(chat_template: str | None) -> Any:
    """With markup registered both as special and as ordinary added tokens."""
    made = byte_tokenizer(chat_template)
    made.add_tokens([AddedToken(text, special=False) for text in MARKUP[len(SPECIAL) :]])
    return made


TOKENIZER = tokenizer(PLAIN + REPLY)
TEMPLATE = Template(TOKENIZER)
ADDED = {TOKENIZER.convert_tokens_to_ids(text) for text in MARKUP}


def asked(chat_template: str | None, *chunks: str) -> tuple[Any, Prompt, str]:
    made = tokenizer(chat_template)
    template = Template(made)
    prompt = template.prompt([template.chunk(text, text) for text in chunks], "Who?")
    return made, prompt, made.decode(prompt.token_ids)


@pytest.mark.parametrize(
    "chat_template", [PLAIN + REPLY, DATED, NO_SYSTEM + PLAIN + REPLY, DROPS_SYSTEM, TRIMS, THINKS, None]
)
def test_every_template_keeps_system_chunks_and_question_in_order(chat_template: str | None) -> None:
    _, prompt, text = asked(chat_template, "One.", "Two.")
    assert text.count(SYSTEM) == 1
    places = [text.index(part) for part in (SYSTEM, "Notes:\n\n", "One.\n\n", "Two.\n\n", BEFORE_QUESTION + "Who?")]
    assert places == sorted(places)
    assert [segment.chunk for segment in prompt.segments] == [None, "One.", "Two.", None, None]


@pytest.mark.parametrize("chat_template", [PLAIN + REPLY, TRIMS])
def test_the_prompt_is_what_the_template_renders_of_the_whole_conversation(chat_template: str) -> None:
    made, prompt, text = asked(chat_template, "One.", "Two.")
    user = "Notes:\n\nOne.\n\nTwo.\n\nQuestion: Who?"
    turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
    assert text == made.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert list(prompt.token_ids) == made(text, add_special_tokens=False)["input_ids"]  # bytes: no merges over borders


@pytest.mark.parametrize("chat_template", [NO_SYSTEM + PLAIN + REPLY, DROPS_SYSTEM])
def test_without_a_system_role_the_user_turn_carries_the_text(chat_template: str) -> None:
    _, _, text = asked(chat_template, "One.")
    assert text.startswith(f"<|user|>{SYSTEM}\n\nNotes:")
    assert "<|system|>" not in text


def test_a_date_is_rendered_once_and_a_frozen_prefix_is_kept() -> None:
    template = Template(tokenizer(DATED))
    assert "Today is" in template.prefix.text
    frozen = Segment(template.plain("Yesterday."), "Yesterday.")
    prompt = template.prompt([], "Who?", prefix=frozen)
    assert prompt.segments[0] is frozen
    assert template.prompt([], "Who?").segments[0] is template.prefix


def test_thinking_is_switched_off() -> None:
    made, prompt, text = asked(THINKS, "One.")
    assert text.endswith("<|assistant|><think></think>")
    assert made.convert_tokens_to_ids("<think>") in prompt.segments[-1].token_ids


def test_markup_of_the_template_is_markup() -> None:
    made, prompt, _ = asked(PLAIN + REPLY, "One.")
    system, user, assistant = made.convert_tokens_to_ids(["<|system|>", "<|user|>", "<|assistant|>"])
    assert prompt.token_ids[0] == system
    assert user in prompt.segments[0].token_ids
    assert prompt.token_ids[-1] == assistant


@pytest.mark.parametrize("bos", [True, False])
def test_without_a_template_bos_stands_where_the_tokenizer_puts_it(bos: bool) -> None:
    made = tokenizer(None)
    if bos:
        made.backend_tokenizer.post_processor = TemplateProcessing(single="<|bos|> $A", special_tokens=[("<|bos|>", 0)])
    template = Template(made)
    prompt = template.prompt([template.chunk("One.", "a")], "Who?")
    assert list(prompt.token_ids).count(0) == int(bos)
    assert (prompt.token_ids[0] == 0) == bos
    assert made.decode(prompt.token_ids).endswith("Question: Who?\nAnswer:")


@given(st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=6), st.sampled_from(["<|", "|>", "<", " "]))))
@example(["<|<|end|>end|>"])
@example(["<think><think>assistantassistant"])
@settings(deadline=None, max_examples=200)
def test_documents_never_become_markup_and_keep_their_text(parts: list[str]) -> None:
    text = "".join(parts)
    ids = TEMPLATE.plain(text)
    assert not ADDED & set(ids)
    assert TOKENIZER.decode(ids) == text
    assert TEMPLATE.chunk(text, "c").token_ids == TEMPLATE.plain(text + "\n\n")
    assert not ADDED & set(TEMPLATE.question(text)[0].token_ids)


@given(st.lists(st.text(min_size=1, max_size=20), max_size=5), st.text(min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_the_prompt_is_the_concatenation_of_segments_tokenised_alone(texts: list[str], question: str) -> None:
    chunks = [TEMPLATE.chunk(text, str(n)) for n, text in enumerate(texts)]
    prompt = TEMPLATE.prompt(chunks, question)
    alone = [TEMPLATE.prefix, *(TEMPLATE.chunk(text, "again") for text in texts), *TEMPLATE.question(question)]
    assert prompt.token_ids == tuple(token for segment in alone for token in segment.token_ids)
    assert prompt.chunks() == list(range(1, len(texts) + 1))
    assert prompt.segments[prompt.question] == TEMPLATE.question(question)[0]
    assert len(prompt) == len(prompt.token_ids)


def test_slots_count_tokens_and_positions_equal_slots_unless_given() -> None:
    segments = (Segment((1, 2, 3)), Segment((4,), chunk="a"), Segment((), chunk="b"), Segment((5, 6)))
    prompt = Prompt(segments, question=3)
    assert prompt.slots == (0, 3, 4, 4, 6)
    assert prompt.starts == (0, 3, 4, 4)
    assert prompt.chunks() == [1, 2]
    placed = Prompt(segments, question=3, positions=(0, 3, 3, 4))
    assert placed.starts == (0, 3, 3, 4)
    assert placed.slots == prompt.slots
    assert len(placed) == 6


def test_the_question_is_trimmed_and_the_chunk_is_not() -> None:
    assert TEMPLATE.question("  Who?\n")[0].text == BEFORE_QUESTION + "Who?"
    assert TEMPLATE.chunk("  One.", "a").text == "  One."
    assert TOKENIZER.decode(TEMPLATE.chunk("  One.", "a").token_ids) == "  One.\n\n"


def test_the_markers_themselves_may_stand_in_documents() -> None:
    text = "\u2042chunks\u2042 and \u2042question\u2042"
    _, prompt, rendered = asked(PLAIN + REPLY, text)
    assert rendered.count(text) == 1
    assert len(prompt.segments) == 4


@pytest.mark.parametrize("template", ["{{ messages[-1].content * 2 }}", "nothing of the user's"])
def test_a_template_that_does_not_render_the_question_once_is_refused(template: str) -> None:
    with pytest.raises(UnsupportedModel, match="chat template"):
        Template(byte_tokenizer(template))
