"""Escaped text says what was escaped, and each part of that stands where it says."""

import json

import pytest

from ragcache.engine.escapes import Unescaped

TEXTS = [
    'A title\n\nHe said "yes", and\tleft.',
    "Kelmär \\n is no line \\\\ \N{SNOWMAN}",
    "\N{GRINNING FACE}x\r\n/\b\f.",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_what_json_escapes_is_read_and_found_again(text: str, ascii_only: bool) -> None:
    raw = "{" + json.dumps(text, ensure_ascii=ascii_only) + "}"
    found = Unescaped(raw, 7)
    assert found.text == '{"' + text + '"}'
    for start in range(len(text)):
        begin, end = found.place(2 + start, 2 + len(text))
        part = raw[begin - 7 : end - 7]
        assert json.loads(f'"{part}"') == text[start:]
        assert part == json.dumps(text[start:], ensure_ascii=ascii_only)[1:-1]


def test_what_a_printed_list_escapes_is_read() -> None:
    texts = ['It\'s "so".\nYes.', "No."]
    assert Unescaped(str(texts)).text == "['It's \"so\".\nYes.', 'No.']"


@pytest.mark.parametrize("text", ["", "No escapes.", "C:\\windows", "\\u12", "\\"])
def test_a_text_without_escapes_says_nothing_else(text: str) -> None:
    assert Unescaped(text).text == ""


def test_half_a_character_is_read_as_half_a_one() -> None:
    assert Unescaped("\\ud83d \\ude00").text == "\ud83d \ude00"
