"""A text that two documents have: does an answer follow the document that the question is about?

    python bench/studies/equal_texts.py --out docs/benchmarks/equal-texts.json

Two pages differ in their headers only. Each question is asked about the first page's subject and about the second's,
over the text and six chunks about people, with the headers of both pages in the prompt, that of the page asked about,
or none. `first` is what 0.1.0 did: the text's KV is that of the first page, whichever is meant.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.metrics import bootstrap, exact_match
from short_pages import Pages

from ragcache import RagCache, Sampling
from ragcache.index.chunks import Chunk, document_id

HEADERS = ("both", "own", "none")
SYSTEMS = {"full": "full", "naive": "naive", "first": "auto", "auto": "auto"}
_STRANGERS = 6


@dataclass(frozen=True)
class Case:
    """Two pages with the same text."""

    headers: tuple[str, str]
    text: str
    others: tuple[str, ...]
    questions: tuple[str, str]
    answer: str

    def prompt(self, side: int, shown: str) -> list[str]:
        """The chunks of a prompt, in an order that the case decides."""
        headers = {"both": self.headers, "own": self.headers[side : side + 1], "none": ()}[shown]
        chunks = [*headers, self.text, *self.others]
        return random.Random(f"{self.text} {side} {shown}").sample(chunks, len(chunks))


def draw_case(number: int, seed: int) -> Case:
    """One case; the same for the same seed."""
    rng = random.Random(f"equal texts {seed} {number}")
    pages = Pages(rng)
    # The index takes the document whose id sorts first for the first one.
    headers = {pages.header(name): name for name in (pages.subject(), pages.subject())}
    (above_one, one), (above_two, two) = sorted(headers.items(), key=lambda pair: document_id(pair[0]))
    [told] = pages.told(1)
    ask = rng.choice(told.relation.asks)
    return Case(
        (above_one, above_two), told.text,
        tuple(pages.stranger() for _ in range(_STRANGERS)), (ask.format(s=one), ask.format(s=two)), told.value,
    )  # fmt: skip


def main(
    n: Annotated[int, typer.Option(help="Pairs of pages.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the pages.")] = 0,
    model: Annotated[str, typer.Option(help="A model, as `ragcache ingest --model` takes it.")] = "bundled",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("equal-texts.json"),
) -> None:
    """Ask about both pages of every pair."""
    use_threads(threads)
    cases = [draw_case(number, seed) for number in range(n)]
    with tempfile.TemporaryDirectory() as place, RagCache.open(place, model=model) as rag:
        for case in cases:
            for header in case.headers:
                texts = (header, case.text)
                rag.index.put(header, "", [(text, 0, len(text)) for text in texts], {})
        rag.ingest(methods=["auto", "naive"])
        rows = [row for shown in HEADERS for row in _rows(rag, cases, shown)]
        about = report.meta(**report.about_reader(rag.reader), pairs=n, seed=seed)
    write(out, {"meta": about, "rows": rows})
    for row in rows:
        typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _rows(rag: RagCache, cases: Sequence[Case], shown: str) -> Iterator[dict[str, Any]]:
    """A row for each system and side: exact match, and what is lost against full prefill, with 95 % intervals."""
    scores = {
        (system, side): [_score(rag, case, side, shown, system) for case in cases]
        for system in SYSTEMS
        for side in (0, 1)
    }
    for (system, side), right in scores.items():
        loss = bootstrap([a - b for a, b in zip(right, scores["full", side], strict=True)])
        yield {
            "headers": shown, "system": system, "asked": ("first", "second")[side], "n": len(right),
            "em": bootstrap(right).mean, "loss": asdict(loss),
        }  # fmt: skip


def _score(rag: RagCache, case: Case, side: int, shown: str, system: str) -> float:
    chunks = [_of_first(rag, text, system) for text in case.prompt(side, shown)]
    said = rag.engine.answer(
        case.questions[side], chunks, method=SYSTEMS[system], sampling=Sampling(max_new_tokens=24)
    ).text
    return exact_match(said, (case.answer,))


def _of_first(rag: RagCache, text: str, system: str) -> Chunk:
    """The index's chunk of a text; as 0.1.0 had it, its first document is meant whichever it is."""
    chunk = rag.engine.chunk(text)
    return replace(chunk, origin="known") if system == "first" else chunk


if __name__ == "__main__":
    typer.run(main)
