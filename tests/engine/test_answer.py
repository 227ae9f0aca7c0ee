"""An answer prints as what was said and from where, fits a screen as an object, and shows in a notebook, escaped."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ragcache.engine.answer import Answer, Source
from ragcache.report import CacheReport, ChunkReport, Comparison, Timings, Tokens

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>" onclick="y\' & \x00\u202e</details>'
STATES = ("hit", "exact", "miss")


def make_answer(
    text: str = "Mara Voss.", *, source: str = "notes/tide.txt", chunk: str = "A note.", n: int = 3
) -> Answer:
    chunks = tuple(
        ChunkReport(str(i), source, 40, STATES[i % 3], text, recomputed=(10, 0, 0)[i % 3])  # type: ignore[arg-type]
        for i in range(n)
    )
    report = CacheReport("auto", 0.1, chunks, Tokens(120, 8, 80, 10, 50), 0.4, 0.5, Timings(first_token=12))
    sources = tuple(Source(str(i), source, chunk, 0.9 - i / 10) for i in range(n))
    return Answer(text, "Who leads?", "smollm2", sources, report)


def test_it_prints_as_its_text_and_its_numbered_sources() -> None:
    answer = make_answer()
    assert str(answer).splitlines() == [
        "Mara Voss.",
        "",
        "Sources",
        "  1  0.90  notes/tide.txt",
        "  2  0.80  notes/tide.txt",
        "  3  0.70  notes/tide.txt",
    ]
    assert str(replace(answer, sources=())) == "Mara Voss."


def test_what_is_worth_saying_is_printed_too() -> None:
    answer = make_answer()
    noted = replace(answer, report=replace(answer.report, notes=("prefilled in full",)))
    assert str(noted).endswith("\n\nNote: prefilled in full")
    assert "prefilled in full" in noted._repr_html_()


@pytest.mark.parametrize("text", ["Mara Voss.", "long " * 9000, "\n\x1b[31m\u202e" * 5000, "\U0001f600" * 5000])
def test_as_an_object_it_fits_a_screen(text: str) -> None:
    answer = make_answer(text, source=f"/{text}", chunk=text, n=40)
    lines = repr(replace(answer, question=text, model=text, comparison=Comparison(30.0, 10.0, True, text))).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 120
    assert "32 more sources" in repr(answer)
    assert "3.0\u00d7" in "".join(lines)


def test_a_notebook_shows_text_sources_and_states() -> None:
    shown = make_answer()._repr_html_()
    assert "Mara Voss." in shown
    assert shown.count("<li>") == 3
    assert "notes/tide.txt \u00b7 similarity 0.90 \u00b7 hit \u00b7 10/40 tokens recomputed (25%)" in shown
    shades = re.findall(r'<details style="background: (.+?)">', shown)
    assert len(set(shades)) == 3
    assert " 25%" in shades[0]
    assert "gradient" not in shades[1] + shades[2]


def test_a_notebook_runs_nothing_that_a_text_says() -> None:
    seen: list[tuple[str, list[str]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            seen.append((tag, [name for name, _ in attributes]))

    def tags(answer: Answer) -> list[tuple[str, list[str]]]:
        seen.clear()
        Tags().feed(answer._repr_html_())
        return list(seen)

    plain = make_answer()
    hostile = make_answer(HOSTILE, source=HOSTILE, chunk=HOSTILE)
    noted = replace(hostile, report=replace(hostile.report, notes=(HOSTILE,), method=HOSTILE))
    assert tags(hostile) == tags(plain)
    assert {tag for tag, _ in tags(noted)} <= {"div", "p", "em", "small", "ol", "li", "details", "summary", "span"}
    assert "alert" in noted._repr_html_()


def test_sources_without_a_score_and_answers_without_any_are_shown() -> None:
    answer = make_answer()
    bare = replace(answer, sources=(Source("elsewhere", "notes/other.txt", "A note."),))
    assert "notes/other.txt" in bare._repr_html_()
    assert "notes/other.txt" in str(bare)
    assert "Sources" not in replace(answer, sources=())._repr_html_()
