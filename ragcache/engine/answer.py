"""An answer with its sources and its report, and how people see it: printed, in a session, and in a notebook."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Self

from ragcache.index.chunks import Chunk
from ragcache.report import CacheReport, ChunkReport, Comparison, make_printable
from ragcache.retrieve.places import find_excerpt, mark_at

_PAGES = {"pptx": "slide", "xlsx": "sheet", "xlsm": "sheet"}  # what a page is called, by suffix
_LISTED = 8  # sources in an answer's repr
_WIDTH = 100  # characters of a text in an answer's repr
#: What a chunk's state means, and its shade, which a light page and a dark one show through.
_STATES = {
    "hit": ("reused", "rgba(46, 160, 67, .22)"),
    "exact": ("reused, as a full prefill has it", "rgba(31, 111, 235, .22)"),
    "miss": ("computed for this answer", "rgba(219, 109, 40, .30)"),
}
_RECOMPUTED = "rgba(219, 109, 40, .55)"


@dataclass(frozen=True)
class Source:
    """One retrieved chunk: where it stands in which document, and how similar it is to the question.

    Attributes
    ----------
    id, source, text : str
        The chunk's id, the document it came from, and what it says.
    score : float or None
        Cosine similarity to the question.
    page : int or None
        The excerpt's page, slide or sheet, from 1; None where the format has none.
    heading : str
        The headings above the excerpt, outermost first.
    excerpt : str
        The passage of the chunk that shares most words with the question, on one line.
    """

    id: str
    source: str
    text: str
    score: float | None = None
    page: int | None = None
    heading: str = ""
    excerpt: str = ""

    @classmethod
    def of(cls, chunk: Chunk, question: str) -> Self:
        """What an answer to a question says of a chunk that it was given."""
        offset, excerpt = find_excerpt(chunk.body, question)
        place = mark_at(chunk.marks, offset)
        return cls(chunk.id, chunk.reported, chunk.text, chunk.score, place.page, place.heading, excerpt)

    @property
    def citation(self) -> str:
        """Where to look: the document, the page, and the headings, on one line."""
        source, heading = make_printable(self.source), make_printable(self.heading)
        unit = _PAGES.get(self.source.rpartition(".")[2].lower(), "p.")
        page = f", {unit} {self.page}" if self.page is not None else ""
        return f'{source}{page}, "{heading}"' if heading else f"{source}{page}"


@dataclass(frozen=True)
class Answer:
    """An answer, what it was answered from, and its report.

    It prints as its text and its numbered sources, and shows in a notebook with the chunks it came from.

    Attributes
    ----------
    text, question, model : str
        What was said, to what, and by which model.
    sources : tuple of Source
        What was retrieved, in the order in which it was read.
    report : CacheReport
        Where each chunk's KV came from, and how long it took.
    comparison : Comparison or None
        The stock path on the same token ids, where it was asked for.
    token_ids : tuple of int
        The answer's tokens.
    refused : bool
        Whether the text says that the model cannot read the question or the chunks, instead of an answer.
    adapter : str
        Folder of the adapter that was merged into the model; empty where there is none.
    """

    text: str
    question: str
    model: str
    sources: tuple[Source, ...]
    report: CacheReport
    comparison: Comparison | None = None
    token_ids: tuple[int, ...] = ()
    refused: bool = False
    adapter: str = ""

    def __str__(self) -> str:
        return make_printable(_plain(self), lines=True)

    def __repr__(self) -> str:
        return _shorten(self)

    def _repr_html_(self) -> str:
        return _render_html(self)

    def as_dict(self) -> dict[str, Any]:
        """The fields of `ragcache ask --json`."""
        compare = self.comparison and {
            "full_prefill_first_token_ms": self.comparison.full_prefill_first_token_ms,
            "speedup": self.comparison.speedup,
            "same_answer": self.comparison.same_answer,
        }
        return {
            "answer": self.text,
            "refused": self.refused,
            "question": self.question,
            "model": self.model,
            "adapter": self.adapter,
            **self.report.as_dict(),
            "sources": [asdict(source) for source in self.sources],
            "compare": compare or None,
        }


def compare_answers(answer: Answer, again: CacheReport, full: Answer) -> Comparison:
    """An answer beside full prefill's of the same token ids; `again` is the report of its second run."""
    return Comparison(
        full_prefill_first_token_ms=full.report.ms.first_token,
        first_token_ms=again.ms.first_token,
        same_answer=full.text == answer.text,
        full_prefill_answer=full.text,
    )


def _plain(answer: Answer) -> str:
    """The text, its numbered sources, and what is worth saying of how it came about."""
    blocks = [answer.text]
    if answer.sources:
        blocks.append("\n".join(["Sources", *(f"  {line}" for line in _numbered(answer.sources))]))
    if answer.report.notes:
        blocks.append("\n".join(f"Note: {note}" for note in answer.report.notes))
    return "\n\n".join(blocks)


def _shorten(answer: Answer) -> str:
    """The answer as an object, on one screen whatever its texts."""
    sources, more = answer.sources[:_LISTED], len(answer.sources) - _LISTED
    lines = [
        f"text={_cut(answer.text)}",
        f"question={_cut(answer.question)}",
        f"model={_cut(answer.model)}",
        f"method={_cut(answer.report.method)}",
        *(f"source={_cut(source.source)}" for source in sources),
        *([f"and {more:,} more sources"] if more > 0 else []),
        f"report={_cut(answer.report.line(answer.comparison))}",
    ]
    return "Answer(\n" + "".join(f"  {line},\n" for line in lines) + ")"


def _cut(text: str) -> str:
    """A text's repr, or its beginning."""
    shown = repr(text[:_WIDTH])
    return shown if len(text) <= _WIDTH and len(shown) <= _WIDTH + 2 else f"{shown[:_WIDTH]}\u2026"


def _render_html(answer: Answer) -> str:
    """The answer for a notebook, with each chunk shaded by where its KV came from. All of it is escaped."""
    return "".join(
        [
            '<div class="ragcache-answer">',
            f'<p style="font-size: 1.1em; white-space: pre-wrap">{escape(answer.text)}</p>',
            *(f"<p><em>{escape(note)}</em></p>" for note in answer.report.notes),
            f"<p><small>{escape(answer.report.line(answer.comparison))}</small></p>",
            *_chunks(answer),
            "</div>",
        ]
    )


def _numbered(sources: Sequence[Source]) -> Iterator[str]:
    for number, source in enumerate(sources, start=1):
        similarity = "    " if source.score is None else f"{source.score:.2f}"
        yield f"{number}  {similarity}  {source.citation}"


def _chunks(answer: Answer) -> Iterator[str]:
    """Every source with what became of its chunk, which opens to the chunk's text; then what the shades mean."""
    states = {chunk.id: chunk for chunk in answer.report.chunks}
    if not answer.sources:
        return
    yield "<p>Sources</p><ol>"
    for source in answer.sources:
        yield f"<li>{_chunk(source, states.get(source.id))}</li>"
    yield "</ol><p><small>"
    for meaning, shade in (*_STATES.values(), ("recomputed share of a reused chunk", _RECOMPUTED)):
        yield f'<span style="background: {shade}">&nbsp;&nbsp;&nbsp;</span> {meaning} &ensp; '
    yield "</small></p>"


def _chunk(source: Source, chunk: ChunkReport | None) -> str:
    similarity = "" if source.score is None else f" \u00b7 similarity {source.score:.2f}"
    title, style = f"{escape(source.source)}{similarity}", ""
    if chunk is not None:
        share = chunk.recomputed / chunk.tokens if chunk.tokens else 0.0
        title += f" \u00b7 {escape(chunk.cache)}"
        title += f" \u00b7 {chunk.recomputed:,}/{chunk.tokens:,} tokens recomputed ({share:.0%})"
        style = f' style="background: {_shade(chunk.cache, share)}"'
    text = f'<div style="white-space: pre-wrap">{escape(source.text)}</div>'
    return f"<details{style}><summary>{title}</summary>{text}</details>"


def _shade(state: str, share: float) -> str:
    """The state's colour, behind that of recomputed tokens for as much of the width as was recomputed."""
    _, shade = _STATES[state]
    if state == "miss" or not share:
        return shade
    return f"linear-gradient(to right, {_RECOMPUTED} {share:.0%}, {shade} {share:.0%})"
