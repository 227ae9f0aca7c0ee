"""Documents are made from sentences and words that the tests know, so that no rule of the code judges itself."""


from hypothesis import given, settings
from hypothesis import strategies as st

from ragcache.retrieve import Limit, Piece, Splitter

Span = tuple[int, int]
WORDS = {
    "English": "The project's tide (2,400 m³) has well-known sites; \"Ada\" leads 3.14 of it, e.g. here".split(),
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
    """Those that would have fitted, and in which a piece ends nevertheless."""
    ends = {piece.end for piece in pieces[:-1]}
    inside = [text[start:end] for start, end in spans if any(start < at < end for at in ends)]
    return [one for one in inside if all(limit.count(one) <= limit.max_tokens for limit in limits)]


@settings(deadline=None, max_examples=150)
@given(documents(("English", "German", "Arabic", "Thai", "Chinese"), (" ", "\n\n", "\n", "  ", "\r\n\r\n")), LIMITS)
def test_no_sentence_and_no_word_that_fits_is_cut(written: Written, limits: list[Limit]) -> None:
    pieces = Splitter(limits).split(written.text)
    assert cut(written.sentences, pieces, written.text, limits) == []
    assert cut(written.words, pieces, written.text, limits) == []


@settings(deadline=None, max_examples=100)
@given(documents(("Markdown",), (" ", "\n\n", "\n\n## Part\n\n", "\n- ", "\n\n```\nx = 1. Y\n\n```\n")), LIMITS)
def test_no_sentence_of_markdown_is_cut_at_its_emphasis_or_links(written: Written, limits: list[Limit]) -> None:
    pieces = Splitter(limits).split(written.text, "markdown")
    assert cut(written.sentences, pieces, written.text, limits) == []
    assert cut(written.words, pieces, written.text, limits) == []
