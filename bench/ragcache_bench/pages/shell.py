"""One self-contained HTML page: style, tables that sort by a click, and nothing from anywhere else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

#: Colours of series 0 to 9, on light and on dark ground (after Okabe and Ito, told apart by colour-blind readers).
_LIGHT = "#0072b2 #d55e00 #009e73 #b0569a #8a6d00 #2a8fc7 #7a3fb5 #b3261e #4f7a1c #3f4a5a".split()
_DARK = "#4fb3f0 #ff8a4c #2fd1a0 #e59ad0 #e6c229 #8fd0ff #c29bff #ff8b82 #a9d66b #b4c0d0".split()


def _colours(values: Sequence[str]) -> str:
    return " ".join(f"--s{number}:{value};" for number, value in enumerate(values))


_CSS = f"""
:root {{ color-scheme: light dark; --ink:#1b1f24; --soft:#5b6470; --line:#d8dde3; --ground:#fff; --panel:#f6f8fa;
  --mark:#fff3c4; {_colours(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink:#e6e9ed; --soft:#9aa5b1; --line:#343b44; --ground:#14171b;
  --panel:#1c2127; --mark:#3d3510; {_colours(_DARK)} }} }}
"""
_CSS += """
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 4rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .4rem; padding-top: .6rem; border-top: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem }
p, figcaption, li { max-width: 60rem } figcaption, .soft { color: var(--soft); font-size: .875rem }
a { color: inherit } code, pre { font: .85em ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--panel); padding: .7rem .9rem; border-radius: 6px; white-space: pre-wrap }
figure { margin: .8rem 0 } svg { max-width: 100%; height: auto; overflow: visible; font: 11px system-ui, sans-serif }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1rem 1.6rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .83rem; font-variant-numeric: tabular-nums; margin: .5rem 0 }
th, td { padding: .22rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child, td.text, th.text { text-align: left }
thead th { cursor: pointer; white-space: normal; max-width: 9rem; background: var(--panel);
  vertical-align: bottom; border-bottom: 2px solid var(--line) }
thead th[aria-sort=ascending]::after { content: " \\2191" } thead th[aria-sort=descending]::after { content: " \\2193" }
tr.front td:first-child { font-weight: 600 } tr.front { background: var(--mark) }
details { margin: .5rem 0 } summary { cursor: pointer; color: var(--soft) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .85rem }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .85rem; padding: .5rem 0 }
.legend label { white-space: nowrap; cursor: pointer } .legend svg { vertical-align: -1px }
.axis { stroke: var(--line); stroke-width: 1 } .tick { fill: var(--soft) } .name { fill: var(--ink) }
.front-line { fill: none; stroke: var(--ink); stroke-width: 1.4; opacity: .55 }
.ring { fill: none; stroke: var(--ink); stroke-width: 1.4 } .level { stroke: var(--soft); stroke-width: 1 }
.whisker { stroke: currentColor; stroke-width: 1; opacity: .35 }
.path { fill: none; stroke: currentColor; stroke-width: 1; opacity: .45 } .dot { fill: currentColor }
@media print { :root { color-scheme: light; --ink:#000; --soft:#444; --line:#bbb; --ground:#fff; --panel:#f3f3f3;
  --mark:#f0ead0; PRINTED } body { max-width: none; padding: 0; font-size: 10pt } .wide { overflow: visible }
  .pair { grid-template-columns: 1fr 1fr }
  h2, h3 { break-after: avoid } figure, tr { break-inside: avoid } table { font-size: 7pt }
  th, td { padding: .1rem .3rem; white-space: normal } .legend input { display: none } details > * { display: block } }
""".replace("PRINTED", _colours(_LIGHT))
_CSS += "".join(f".s{number} {{ color: var(--s{number}) }}\n" for number in range(len(_LIGHT)))

_JS = """
for (const head of document.querySelectorAll("table.sorts thead th")) head.onclick = () => {
  const body = head.closest("table").tBodies[0], column = head.cellIndex;
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = row => { const cell = row.cells[column].dataset.v; return cell === "" ? null : +cell || cell };
  const order = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a > b ? 1 : -1) * (down ? -1 : 1);
  body.append(...[...body.rows].sort((a, b) => order(value(a), value(b))));
};
for (const box of document.querySelectorAll(".legend input")) box.onchange = () => {
  for (const part of document.querySelectorAll(`[data-series="${CSS.escape(box.value)}"]`))
    part.style.display = box.checked ? "" : "none";
};
"""
COLOURS = len(_LIGHT)


def page(title: str, body: Iterable[str], *, script: str = "") -> str:
    """The whole document.

    Parameters
    ----------
    title : str
        Plain text.
    body : iterable of str
        HTML that is already escaped.
    script : str
        More JavaScript, behind what sorts the tables.
    """
    # Nothing may be fetched: the policy holds it even where a page quotes a document that tries to.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{_CSS}</style>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(body)
        + f"\n<script>{_JS}{script}</script>\n</body></html>\n"
    )


@dataclass(frozen=True)
class Cell:
    """A table's cell: what is shown, and what it is sorted by; one without a value sorts last, whichever way."""

    shown: str
    value: float | str | None = None
    style: str = ""

    def html(self) -> str:
        """Escaped, as a `td`."""
        style = f' style="{escape(self.style)}"' if self.style else ""
        kind = ' class="text"' if isinstance(self.value, str) else ""
        value = "" if self.value is None else str(self.value)
        return f'<td data-v="{escape(value)}"{kind}{style}>{escape(self.shown)}</td>'


def table(
    heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[Cell]], marked: Sequence[bool] | None = None
) -> str:
    """A table that sorts by a click on a heading.

    Parameters
    ----------
    heads : sequence of (str, str)
        Each column's title, and what it means.
    rows : sequence of sequence of Cell
        Top to bottom.
    marked : sequence of bool, optional
        Rows to highlight.
    """
    titles = "".join(f'<th scope="col" title="{escape(about)}">{escape(title)}</th>' for title, about in heads)
    lines = []
    for number, row in enumerate(rows):
        kind = ' class="front"' if marked is not None and marked[number] else ""
        lines.append(f"<tr{kind}>" + "".join(cell.html() for cell in row) + "</tr>")
    whole = f"<thead><tr>{titles}</tr></thead><tbody>\n" + "\n".join(lines) + "</tbody>"
    return f'<div class="wide"><table class="sorts">{whole}</table></div>'


def terms(pairs: Mapping[str, Any]) -> str:
    """A list of names and what they stand for."""
    items = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs.items())
    return f"<dl>{items}</dl>"


def rerun(about: Mapping[str, Any]) -> Iterator[str]:
    """A run's command, and what else its meta says."""
    yield "<h2>To run it again</h2>"
    yield f"<pre>{escape(str(about.get('command', '')))}</pre>"
    yield terms({name: _flat(value) for name, value in about.items() if name != "command"})


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_flat(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
