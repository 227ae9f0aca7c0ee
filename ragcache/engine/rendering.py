"""An answer as people see it: printed, as an object in a session, and in a notebook."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragcache.report import Answer, ChunkReport, Source

_LISTED = 8  # sources in an answer's repr
_WIDTH = 100  # characters of a text in an answer's repr
#: What a chunk's state means, and its shade, which a light page and a dark one show through.
_STATES = {
    "hit": ("reused", "rgba(46, 160, 67, .22)"),
    "exact": ("reused, as a full prefill has it", "rgba(31, 111, 235, .22)"),
    "miss": ("computed for this answer", "rgba(219, 109, 40, .30)"),
}
_RECOMPUTED = "rgba(219, 109, 40, .55)"


def plain(answer: "Answer") -> str:
    """The text, its numbered sources, and what is worth saying of how it came about."""
    blocks = [answer.text]
    if answer.sources:
        blocks.append("\n".join(["Sources", *(f"  {line}" for line in _numbered(answer.sources))]))
    if answer.report.notes:
        blocks.append("\n".join(f"Note: {note}" for note in answer.report.notes))
    return "\n\n".join(blocks)


def shortened(answer: "Answer") -> str:
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


def html(answer: "Answer") -> str:
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


def _numbered(sources: "Sequence[Source]") -> Iterator[str]:
    for number, source in enumerate(sources, start=1):
        similarity = "    " if source.score is None else f"{source.score:.2f}"
        yield f"{number}  {similarity}  {source.citation}"


def _chunks(answer: "Answer") -> Iterator[str]:
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


def _chunk(source: "Source", chunk: "ChunkReport | None") -> str:
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
