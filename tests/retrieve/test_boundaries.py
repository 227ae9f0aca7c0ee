"""Documents are made from sentences and words that the tests know, so that no rule of the code judges itself."""

import random
import time
from collections.abc import Callable
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcache.bundled import corpus_path, reader_path
from ragcache.model.reader import Reader
from ragcache.prompt import Template
from ragcache.retrieve import Embedder, Layout, Limit, Piece, Splitter, load
from ragcache.retrieve.boundaries import find_boundaries

Span = tuple[int, int]
WORDS = {
    "English": 'The project\'s tide (2,400 m³) has well-known sites; "Ada" leads 3.14 of it, e.g., here'.split(),
    "German": "Das „Projekt“ läuft über Flüsse, Müller-Lüdenscheidt führt's am Donaudampfschifffahrtsufer 2019".split(),
    "Arabic": "يقود المشروع أحمد، من المكتب القديم ؛ الميزانية ثلاثة ملايين كافيةٌ".split(),
    "Thai": "โครงการน้ำขึ้น น้ำลง มีสำนักงาน ใกล้แม่น้ำเก่า".split(),
    "Chinese": list("潮汐项目由安娜领导，办公室设在老港口旁边、预算为三百万元"),
    "Markdown": "The *tide* project's `site_name` has **two leads** and [a page](https://a.b/c?d=1&e=2)".split(),
}
STARTS = {"English": "A", "German": "Ü", "Arabic": "أ", "Thai": "น", "Chinese": "他", "Markdown": "A"}
STOPS = {
    "English": [".", "!", "?", '."', "?)", "…"],
    "German": [".", "!“", ".«"],
    "Arabic": [".", "؟", "!"],
    "Thai": ["।", "!"],
    "Chinese": ["。", "！", "？", "。”", "。）"],
    "Markdown": [".", "!**", ".*", ".`"],
}


def words(text: str) -> int:
    return len(text.split())


def with_special_tokens(text: str) -> int:
    return 2 + len(text) // 3


COUNTERS = st.sampled_from([len, words, with_special_tokens, lambda text: len(text.encode())])
LIMITS = st.lists(st.tuples(COUNTERS, st.integers(8, 150)), min_size=1, max_size=3).map(
    lambda limits: [Limit(count, most, "test") for count, most in limits]
)


class Written:
    """A text with the places of its sentences and words."""

    def __init__(self) -> None:
        self.text = ""
        self.sentences: list[Span] = []
        self.words: list[Span] = []

    def add(self, language: str, chosen: list[str], stop: str) -> None:
        start, space = len(self.text), "" if language == "Chinese" else " "
        start -= 2 * self.text.endswith("- ")  # a list's dash belongs to what it is before
        for number, word in enumerate([STARTS[language] + chosen[0], *chosen[1:]]):
            self.text += space if number else ""
            if space:
                self.words.append((len(self.text), len(self.text + word)))
            self.text += word
        self.text += stop
        self.sentences.append((start, len(self.text)))


@st.composite
def documents(draw: st.DrawFn, languages: tuple[str, ...], breaks: tuple[str, ...]) -> Written:
    written = Written()
    for language in draw(st.lists(st.sampled_from(languages), min_size=1, max_size=12)):
        chosen = draw(st.lists(st.sampled_from(WORDS[language]), min_size=1, max_size=25))
        written.add(language, chosen, draw(st.sampled_from(STOPS[language])))
        written.text += draw(st.sampled_from(breaks))
    return written


def cut(spans: list[Span], pieces: list[Piece], text: str, limits: list[Limit]) -> list[str]:
    """Find those that would have fitted, and in which a piece ends nevertheless."""
    ends = {piece.end for piece in pieces[:-1]}
    inside = [text[start:end] for start, end in spans if any(start < at < end for at in ends)]
    return [one for one in inside if all(limit.count(one) <= limit.max_tokens for limit in limits)]


@settings(deadline=None, max_examples=150)
@given(documents(("English", "German", "Arabic", "Thai", "Chinese"), (" ", "\n\n", "\n", "  ", "\r\n\r\n")), LIMITS)
def test_no_sentence_and_no_word_that_fits_is_cut(written: Written, limits: list[Limit]) -> None:
    pieces = Splitter(limits).split(written.text)
    assert cut(written.sentences, pieces, written.text, limits) == [], written.text
    assert cut(written.words, pieces, written.text, limits) == []


@settings(deadline=None, max_examples=100)
@given(documents(("Markdown",), (" ", "\n\n", "\n\n## Part\n\n", "\n- ", "\n\n```\nx = 1. Y\n\n```\n")), LIMITS)
def test_no_sentence_of_markdown_that_fits_is_cut_at_its_emphasis_or_links(
    written: Written, limits: list[Limit]
) -> None:
    pieces = Splitter(limits).split(written.text, "markdown")
    assert cut(written.sentences, pieces, written.text, limits) == [], written.text
    assert cut(written.words, pieces, written.text, limits) == []


@pytest.fixture(scope="module")
def limits(embedder: Embedder) -> list[Limit]:
    """The bundled reader's and the embedder's, as ingestion has them."""
    template = Template(Reader.load(str(reader_path())).tokenizer)
    return [Limit(lambda text: len(template.plain(text)), 71, "the reader"), Limit(embedder.count, 256, "the embedder")]


def test_the_demo_corpus_is_cut_at_ends_of_lines_and_sentences_only(limits: list[Limit]) -> None:
    inner = 0
    for file in sorted(corpus_path().rglob("*.*")):
        text = file.read_text(encoding="utf-8")
        pieces = Splitter(limits).split(text, "markdown" if file.suffix == ".md" else "prose")
        assert all(limit.count(piece.text) <= limit.max_tokens for piece in pieces for limit in limits)
        for piece, following in pairwise(pieces):
            assert piece.text[-1] in ".!?" or "\n" in text[piece.end : following.start], piece.text[-40:]
            inner += 1
    assert inner > 300


def story(seed: int) -> list[str]:
    """Sentences of 8 to 12 words; numbers, initials and brackets among them."""
    choose = random.Random(seed)
    pool = "tide|harbour|(2,400) sites|project|Ada's|3.14 m|team|budget|office|e.g., old|river|region 6 of".split("|")
    return [" ".join(["The", *choose.choices(pool, k=choose.randint(6, 10)), "ends."]) for _ in range(60)]


def pdf(paragraphs: list[str]) -> bytes:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    file = BytesIO()
    SimpleDocTemplate(file).build([Paragraph(text, getSampleStyleSheet()["BodyText"]) for text in paragraphs])
    return file.getvalue()


def docx(paragraphs: list[str]) -> bytes:
    import docx

    document, file = docx.Document(), BytesIO()
    for number, text in enumerate(paragraphs):
        document.add_heading(f"Part {number}")
        document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def html(paragraphs: list[str]) -> bytes:
    return "".join(
        f"<h2>Part</h2>\n<p>{text.replace('old river', 'old <b>river</b>')}</p>" for text in paragraphs
    ).encode()


@pytest.mark.parametrize("write", [pdf, docx, html], ids=lambda write: write.__name__)
def test_every_sentence_of_a_file_is_whole_in_a_chunk(
    write: Callable[[list[str]], bytes], limits: list[Limit], tmp_path: Path
) -> None:
    chapters = [story(seed) for seed in range(3)]
    file = tmp_path / f"story.{write.__name__}"
    file.write_bytes(write([" ".join(chapter) for chapter in chapters]))
    found = Splitter(limits).split(load(file).text, "prose" if write is pdf else "lines")
    pieces = [" ".join(piece.text.split()) for piece in found]
    assert len(pieces) > 50
    assert max(limits[0].count(sentence) for sentence in chapters[0]) <= 71
    for sentence in (sentence for chapter in chapters for sentence in chapter):
        assert any(sentence in piece for piece in pieces), sentence


def test_source_code_is_cut_between_lines_and_at_blank_ones_before_outer_lines_first(limits: list[Limit]) -> None:
    function = "def region_{n}(site: str, budget: int = 6) -> str:\n    lead = site.strip()\n\n    return lead * budget"
    text = "import something_of_a_long_name_that_fills_a_line\nimport another\n\n" + "\n\n".join(
        function.format(n=n) for n in range(30)
    )
    pieces = Splitter([Limit(words, 36, "reader")]).split(text, "lines")
    assert all(piece.text.startswith(("import", "def")) for piece in pieces)
    assert len(pieces) == 15


SENTENCES = {
    "He asked “Why?” and left. Then nothing.": ["He asked “Why?” and left.", "Then nothing."],
    "It costs 3.14 at a.b/c?d=1! e.g. here, if a != b. Yes.": [
        "It costs 3.14 at a.b/c?d=1!",
        "e.g. here, if a != b.",
        "Yes.",
    ],
    "See Fig. 3 of the U.S. report, p. 4 ff. of it.": ["See Fig. 3 of the U.S. report, p. 4 ff. of it."],
    "It burns a mixture of acetylene and of compressed O\n2. Then it cools.": [
        "It burns a mixture of acetylene and of compressed O\n2.",
        "Then it cools.",
    ],
    "他问：“为什么？”“不知道。”她说。（完。）": ["他问：“为什么？”", "“不知道。”", "她说。", "（完。）"],
    "هل هذا جيد؟ نعم. شكرا!": ["هل هذا جيد؟", "نعم.", "شكرا!"],
    "**Bold.** *Next one.* `Code.` Last": ["**Bold.**", "*Next one.*", "`Code.`", "Last"],
    "„Gut!“ Sie geht. „Nein.“": ["„Gut!“", "Sie geht.", "„Nein.“"],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences_end_where_readers_see_them_end(text: str) -> None:
    def count(part: str) -> int:
        return 1 if any(part in sentence for sentence in SENTENCES[text]) else 1 + len(part)

    assert [piece.text for piece in Splitter([Limit(count, 1, "one")]).split(text)] == SENTENCES[text]


def split(text: str, most: int, layout: Layout = "prose") -> list[str]:
    return [piece.text for piece in Splitter([Limit(words, most, "reader")]).split(text, layout)]


def test_a_heading_stays_with_the_sentence_behind_it() -> None:
    body = " ".join(f"Sentence {n} has exactly seven words here." for n in range(9))
    for heading in ("## Site", "Site\n----", "# Report\n\n## Site"):
        first, *rest = split(f"Before it there are words.\n\n{heading}\n\n{body}", 30, "markdown")
        assert first == "Before it there are words."
        assert rest[0].startswith(f"{heading}\n\nSentence 0 has")


def test_higher_headings_are_coarser_and_none_is_seen_in_code() -> None:
    text = "# A\n\na a\n\n## B\n\nb b\n\n# C\n\nc c\n\n## D\n\nd d"
    assert split(text, 12, "markdown") == [text[: text.index("\n\n# C")], text[text.index("# C") :]]
    code = "Intro.\n\n```sh\n# none\na b c d\n\ne f g h\n```\n\nThe end of it is here."
    assert split(code, 14, "markdown") == [code[: code.index("\n\nThe")], code[code.index("The") :]]


def test_no_scrap_is_split_off_where_more_could_join_it() -> None:
    body = " ".join(f"Sentence {n} has exactly seven words here." for n in range(9))
    assert split(f"Title\n\n{body}", 30)[0].startswith("Title\n\nSentence 0 has")


def test_wrapped_lines_of_a_list_and_windows_line_ends_are_no_borders() -> None:
    item = "- a project of the tide that has a lead, a budget,{}and an office near the old river of the town.{}"
    assert all(one.startswith("- a") for one in split(item.format("\n  ", "\n") * 9, 22, "markdown"))
    prose = "A project of the tide that has a lead, a budget\r\nand an office near the river. "
    assert all(one.endswith("river.") for one in split(prose * 9, 20))


HOSTILE: dict[str, Callable[[int], str]] = {
    "ideographs": lambda n: "漢字仮名" * (n // 4),
    "digits": lambda n: "0123456789" * (n // 10),
    "one letter": lambda n: "a" * n,
    "words": lambda n: "tide lead " * (n // 10),
    "sentences": lambda n: "A b. " * (n // 5),
    "short lines": lambda n: "a\n" * (n // 2),
    "blank lines": lambda n: "\n" * n + "a",
    "spaces": lambda n: ("a" + " " * (n // 4)) * 4,
    "combining marks": lambda n: "a" + "\u0301" * n,
    "stops": lambda n: ".,) " * (n // 4),
    "brackets": lambda n: "." + ")" * n,
    "headings": lambda n: "# a\n" * (n // 4),
    "a heading of hashes": lambda n: "# a" + " #" * (n // 2) + "a",
    "fences": lambda n: "```\n" * (n // 4),
    "a long line over another": lambda n: "a" * (n // 2) + "\n" + "-" * (n // 2) + "a",
}


@pytest.mark.parametrize("layout", ["prose", "markdown"])
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_splitting_counts_no_more_than_in_proportion_to_the_text(make: Callable[[int], str], layout: Layout) -> None:
    shown: list[int] = []

    def count(text: str) -> int:
        shown.append(len(text))
        return -(-len(text) // 3)

    def work(n: int) -> tuple[int, int]:
        shown.clear()
        assert Splitter([Limit(count, 50, "reader")]).split(make(n), layout)
        return len(shown), sum(shown)

    calls, characters = work(25_000)
    more_calls, more_characters = work(100_000)
    assert more_characters < 12 * 100_000
    assert more_calls <= 4.5 * calls + 20
    assert more_characters <= 4.5 * characters + 10_000


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["prose", "markdown", "lines"])
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_borders_of_a_megabyte_are_found_in_seconds(make: Callable[[int], str], layout: Layout) -> None:
    text = make(1_000_000)
    start = time.perf_counter()
    find_boundaries(text, layout)
    assert time.perf_counter() - start < 10
