"""One question as a page: its text coloured by what reuse gets wrong, the heat map, where the question looks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import torch
from torch import Tensor

from ragcache_bench.inspection import Choice, Inspection, by_layer
from ragcache_bench.pages.pixels import COOL, WARM, Strip, png, shares, strips
from ragcache_bench.pages.shell import Cell, page, rerun, table, terms

_STYLE = """<style>
.chunk { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line); padding: .15rem .8rem;
  margin: .7rem 0; line-height: 1.75 }
.chunk > b { display: block; font-size: .75rem; color: var(--soft); font-weight: 500; white-space: normal }
.gold { border-left-color: var(--s2) } .t { border-radius: 2px } .sel { border-bottom: 2px solid var(--s0) }
.maps { display: grid; grid-template-columns: 5rem 1fr 1fr; gap: .3rem .8rem; align-items: center; font-size: .8rem }
.maps img { width: 100%; min-height: 2.2rem; image-rendering: pixelated; border: 1px solid var(--line) }
.pick { margin: .6rem 0; font-size: .85rem } select { font: inherit }
</style>"""
_SCRIPT = """
const tokens = document.querySelectorAll(".t"), heat = JSON.parse(document.getElementById("heat").textContent);
const paint = () => {
  const rows = heat[document.getElementById("what").value], row = rows[+document.getElementById("layer").value];
  tokens.forEach((token, at) => token.style.background = `rgba(WARM,${(parseInt(row[at], 36) / 35).toFixed(2)})`);
};
for (const name of ["what", "layer"]) document.getElementById(name).onchange = paint;
""".replace("WARM", ",".join(map(str, WARM)))
_LAYERS = (
    ("layer", "from the input upwards", ""),
    ("K naive", "naive reuse: squared deviation of K over full prefill's squared norm", "key_naive"),
    ("V naive", "the same of V", "value_naive"),
    ("K left", "what is left of it once the method has computed the first token", "key_mended"),
    ("V left", "the same of V", "value_mended"),
    ("in chunk heads", "share of naive reuse's K deviation in the first four tokens of the chunks", "heads"),
    ("recomputed", "share of it in the tokens that the method recomputes", "covered"),
    (
        "attention moved",
        "total variation between the question's attention to the context under full prefill and the method",
        "attention",
    ),
)


def html(seen: Inspection, about: Mapping[str, Any], *, sources: Sequence[str] = (), gold: Sequence[int] = ()) -> str:
    """The page, with nothing to be fetched from anywhere.

    Parameters
    ----------
    seen : Inspection
        What to show.
    about : mapping
        The run's meta; "answers" among it are those that are accepted.
    sources : sequence of str
        Where each chunk comes from, in the prompt's order.
    gold : sequence of int
        Chunks that hold the answer.
    """
    method = _named(seen.choices[0])
    body = [
        _STYLE,
        f"<h1>{escape(seen.question)}</h1>",
        *_answers(seen, about),
        *_text(seen, method, sources, gold),
        *_heat(seen, method),
        *_attention(seen, method),
        *_figures(seen),
        *rerun(about),
    ]
    return page(f"ragcache: {seen.question}", body, script=_SCRIPT)


def bands(seen: Inspection) -> list[Strip]:
    """Marks, deviations and attention of every token of the context, as bands of (rows, slots) in [0, 1]."""
    context = seen.naive.key.shape[1]
    layers = tuple(f"layer {number}" for number in range(seen.naive.key.shape[0]))
    chosen = torch.stack([choice.selected[:context].float() for choice in seen.choices])
    full, reused = (_looks(seen, part) for part in (seen.attention_full, seen.attention_reused))
    method, views = _named(seen.choices[0]), _views(seen)
    return [
        Strip("recomputed by", tuple(_named(choice) for choice in seen.choices), chosen, COOL),
        Strip("K of naive reuse: deviation from full prefill", layers, views["key"]),
        Strip("V of naive reuse", layers, views["value"]),
        Strip(f"K left by {method}, on the same scale", layers, views["key-left"]),
        Strip("attention from the question, full prefill", layers, shares(full, full), COOL),
        Strip(f"attention from the question, {method}, on the same scale", layers, shares(reused, full), COOL),
    ]


def _named(choice: Choice) -> str:
    return choice.method if choice.recompute is None else f"{choice.method} {choice.recompute:g}"


def _looks(seen: Inspection, attention: Tensor) -> Tensor:
    """(layers, slots), mean over the question's tokens, of the chunks only: sinks in the prefix would drown them."""
    inside = torch.zeros(attention.shape[2])
    inside[[slot for span in seen.chunks for slot in span]] = 1
    return attention.mean(1) * inside


def _answers(seen: Inspection, about: Mapping[str, Any]) -> Iterator[str]:
    accepted = about.get("answers") or ()
    if accepted:
        yield f"<p>Accepted: <b>{escape(' | '.join(map(str, accepted)))}</b></p>"
    heads = [("method", "and its budget"), ("answer", "greedy"), ("charged", "share of reused tokens computed again"),
             ("tokens", "reused tokens that are computed again"), ("as full prefill", "the same words")]  # fmt: skip
    rows = [[Cell("full prefill", ""), Cell(seen.full_answer, seen.full_answer), *([Cell("-")] * 3)]]
    for choice in seen.choices:
        same = "yes" if choice.answer == seen.full_answer else "no"
        count = int(choice.selected.sum())
        rows.append([Cell(_named(choice), _named(choice)), Cell(choice.answer, choice.answer),
                     Cell(f"{choice.charged:.3f}", choice.charged), Cell(str(count), count),
                     Cell(same, same)])  # fmt: skip
    yield table(heads, rows)


def _text(seen: Inspection, method: str, sources: Sequence[str], gold: Sequence[int]) -> Iterator[str]:
    yield "<h2>The text</h2>"
    yield (
        "<p>The warmer a token, the farther its K or V stands from what full prefill computes there; each layer is "
        f"measured by its own 99th percentile. Underlined tokens are recomputed by {escape(method)}. Point at a token "
        "for its figures.</p>"
    )
    options = "".join(f'<option value="{name}">{words}</option>' for name, words in _VIEWS.items())
    depth = seen.naive.key.shape[0]
    layers = "".join(f'<option value="{number + 1}">layer {number}</option>' for number in range(depth))
    yield (
        f'<p class="pick"><label>Show <select id="what">{options}</select></label> in '
        f'<label><select id="layer"><option value="0">the mean of all layers</option>{layers}</select></label></p>'
    )
    levels = {name: torch.cat([view.mean(0, keepdim=True), view]) for name, view in _views(seen).items()}
    tokens = _tokens(seen, levels["key"][0].tolist())
    for number, span in enumerate(seen.chunks):
        source = f" · {sources[number]}" if number < len(sources) and sources[number] else ""
        kind, note = ("chunk gold", " · holds the answer") if number in gold else ("chunk", "")
        text = "".join(tokens[slot] for slot in span)
        yield f'<div class="{kind}"><b>chunk {number + 1}{escape(source)}{note}</b>{text}</div>'
    slots = [slot for span in seen.chunks for slot in span]
    codes = {name: [_digits(row[slots]) for row in rows] for name, rows in levels.items()}
    # Digits and names of ours only, so nothing in it can end the element.
    yield f'<script type="application/json" id="heat">{json.dumps(codes)}</script>'


_VIEWS = {
    "key": "K of naive reuse",
    "value": "V of naive reuse",
    "key-left": "K that the method leaves",
    "value-left": "V that the method leaves",
}


def _views(seen: Inspection) -> dict[str, Tensor]:
    """(layers, slots) in [0, 1]; what the method leaves stands on the scale of naive reuse."""
    pairs = {"key": (seen.naive.key, seen.recomputed_kv.key, seen.full.key),
             "value": (seen.naive.value, seen.recomputed_kv.value, seen.full.value)}  # fmt: skip
    found: dict[str, Tensor] = {}
    for name, (naive, left, full) in pairs.items():
        floor = full.mean(-1) / 100
        found |= {name: shares(naive, naive, floor), f"{name}-left": shares(left, naive, floor)}
    return found


def _digits(row: Tensor) -> str:
    """One digit of base 36 per value in [0, 1]."""
    return "".join("0123456789abcdefghijklmnopqrstuvwxyz"[round(35 * value)] for value in row.tolist())


def _tokens(seen: Inspection, heat: Sequence[float]) -> list[str]:
    """Each context token as a span: how warm it is, and its figures for who points at it."""
    key, value = (
        (part.sum(0) / norm.sum(0).clamp_min(1e-12)).tolist()
        for part, norm in ((seen.naive.key, seen.full.key), (seen.naive.value, seen.full.value))
    )
    by = [[_named(choice) for choice in seen.choices if choice.selected[slot]] for slot in range(len(heat))]
    colour = ",".join(map(str, WARM))
    kinds = ["t sel" if chosen else "t" for chosen in seen.choices[0].selected.tolist()]
    return [
        f'<span class="{kinds[slot]}" style="background:rgba({colour},{warm:.2f})" title="slot {slot}: K off by '
        f'{key[slot]:.1%}, V by {value[slot]:.1%}; recomputed by {escape(", ".join(by[slot]) or "none")}">'
        f"{escape(seen.tokens[slot])}</span>"
        for slot, warm in enumerate(heat)
    ]


def _heat(seen: Inspection, method: str) -> Iterator[str]:
    yield "<h2>Which tokens deviate in which layers</h2>"
    names = tuple(f"chunk {number + 1}" for number in range(len(seen.chunks)))
    yield f"<figure>{strips(bands(seen), seen.chunks, names)}<figcaption>"
    yield (
        "One column per token of the context, in the prompt's order; lines are chunk borders. Each layer's colour is "
        "full at the 99th percentile of naive reuse, or at 1 % of full prefill's squared norm where that is more; of "
        f"full prefill where attention is shown. What {escape(method)} leaves is on the scale of naive reuse, so paler "
        "is recomputed. Attention is the mean over heads and the question's tokens, inside the chunks."
        "</figcaption></figure>"
    )


def _attention(seen: Inspection, method: str) -> Iterator[str]:
    yield "<h2>Where each of the question's tokens looks</h2>"
    yield "<p>Mean over heads; a row per token of the question, a column per token of the chunks.</p>"
    asked = " ".join(seen.tokens[slot].strip() for slot in seen.asked)
    yield f'<p class="soft">Rows, top to bottom: {escape(asked)}</p>'
    slots = [slot for span in seen.chunks for slot in span]
    cells = ["<span></span><b>full prefill</b>", f"<b>{escape(method)}</b>"]
    for layer, (full, reused) in enumerate(zip(seen.attention_full, seen.attention_reused, strict=True)):
        scale = full[:, slots].flatten()[None]  # one for the whole map
        both = [png(shares(part[:, slots], scale), COOL) for part in (full, reused)]
        cells.append(f"<span>layer {layer}</span>" + "".join(f'<img alt="" src="{uri}">' for uri in both))
    yield f'<div class="maps">{"".join(cells)}</div>'


def _figures(seen: Inspection) -> Iterator[str]:
    yield "<h2>Layer by layer</h2>"
    layers = by_layer(seen)
    rows = [
        [Cell(str(number), number), *(_figure(layer, name) for _, _, name in _LAYERS[1:])]
        for number, layer in enumerate(layers)
    ]
    yield table([(title, about) for title, about, _ in _LAYERS], rows)
    yield terms({title: about for title, about, _ in _LAYERS[1:]})


def _figure(layer: Mapping[str, float], name: str) -> Cell:
    # Shares of a deviation that is nothing but rounding say nothing.
    noise = name in ("heads", "covered") and layer["key_naive"] < 1e-4
    return Cell("-") if noise else Cell(f"{layer[name]:.3f}", layer[name])
