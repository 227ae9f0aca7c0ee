"""What does a chunk's KV tell of what its reader may not read? Secrets planted before it in its document.

    python bench/studies/planted_secrets.py --out docs/benchmarks/planted-secrets.json

A page has a header that names its subject and a chunk with a secret fact, both for the board only, and a chunk for
everybody that says `it`. Only that one is in the prompt, with chunks about people. Whoever asks tries to learn

- whom it is about: for each of ten candidates the question is asked, and the one is picked for which the fact's first
  token is likeliest. Chance is .1;
- the secret fact, by asking for it: the share of answers that say it, and how often its first word is the likeliest of
  ten values' first words.

The page is ingested with access labels and without. `naive` never saw the other chunks.
"""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.datasets.item import holds
from ragcache_bench.metrics import wilson
from short_pages import Pages, Told

from ragcache import RagCache, Sampling
from ragcache.engine.prefill import choose_strategy
from ragcache.engine.request import RequestOptions
from ragcache.index.chunks import Chunk

CANDIDATES, _STRANGERS = 10, 4
BOARD = frozenset({"board"})
SYSTEMS = (("naive", None), ("auto", 0.0), ("auto", 0.05), ("auto", 0.15))


@dataclass(frozen=True)
class Case:
    """A page with a secret; the right subject and the right value come first."""

    header: str
    secret: Told
    shown: Told
    others: tuple[str, ...]
    subjects: tuple[str, ...]
    values: tuple[str, ...]


def draw_case(number: int, seed: int) -> Case:
    """One case; the same for the same seed."""
    pages = Pages(random.Random(f"planted secrets {seed} {number}"))
    subjects = tuple(pages.subject() for _ in range(CANDIDATES))
    while True:  # until the values can be told by their first words
        secret, shown = pages.told(2)
        values = (secret.value, *(pages.names.draw(secret.relation.value) for _ in range(CANDIDATES - 1)))
        if len({value.split()[0] for value in values if value[0].isalpha()}) == CANDIDATES:
            break
    others = tuple(pages.stranger() for _ in range(_STRANGERS))
    return Case(pages.header(subjects[0]), secret, shown, others, subjects, values)


def main(
    n: Annotated[int, typer.Option(help="Pages, each with one secret.")] = 500,
    guessed: Annotated[int, typer.Option(help="Pages of those whose subject is guessed, too.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the pages.")] = 0,
    model: Annotated[str, typer.Option(help="A model, as `ragcache ingest --model` takes it.")] = "bundled",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("planted-secrets.json"),
) -> None:
    """Try to extract every secret, with labels and without."""
    use_threads(threads)
    cases = [draw_case(number, seed) for number in range(n)]
    rows = []
    for labelled in (False, True):
        with tempfile.TemporaryDirectory() as place, RagCache.open(place, model=model) as rag:
            for number, case in enumerate(cases):
                texts = (case.header, case.secret.text, case.shown.text)
                labels = (BOARD, BOARD, None) if labelled else ()
                rag.index.put(f"{number}", "", [(text, 0, len(text)) for text in texts], {}, labels)
            rag.ingest(methods=["auto", "naive"])
            for method, recompute in SYSTEMS:
                rows.append({"labels": labelled, **_row(rag, cases, guessed, method, recompute)})
                typer.echo(" ".join(f"{name} {value}" for name, value in rows[-1].items()))
            about = report.meta(**report.about_reader(rag.reader), pages=n, seed=seed)
    write(out, {"meta": about, "rows": rows})


def _row(rag: RagCache, cases: Sequence[Case], guessed: int, method: str, recompute: float | None) -> dict[str, Any]:
    """How often the subject and the secret were told, with 95 % intervals by Wilson."""
    options = RequestOptions(method, recompute, Sampling(max_new_tokens=24))
    tried = [_learn_secret(rag, case, options) for case in cases]
    found = {
        "subject_picked": [_guess_subject(rag, case, options) for case in cases[:guessed]],
        "secret_picked": [picked for picked, _ in tried],
        "secret_said": [said for _, said in tried],
    }
    row: dict[str, Any] = {
        "method": method,
        "recompute": recompute,
        "n": len(tried),
        "guessed": min(guessed, len(cases)),
    }
    for name, hits in found.items():
        share = wilson(sum(hits) / len(hits), len(hits))
        row |= {name: share.mean, f"{name}_low": share.low, f"{name}_high": share.high}
    return row


def _guess_subject(rag: RagCache, case: Case, options: RequestOptions) -> bool:
    """Whether the fact is likeliest where the right candidate is asked about."""
    asks = [case.shown.relation.asks[0].format(s=name) for name in case.subjects]
    requests = rag.engine.requests.from_pairs([(one, _chunks(rag, case)) for one in asks], options)
    prefilled = [choose_strategy(one.method).prefill(one, rag.index) for one in (build() for build in requests)]
    first = _first_token(rag, case.shown.value)
    return _is_first([one.logits.log_softmax(-1)[first] for one in prefilled])


def _learn_secret(rag: RagCache, case: Case, options: RequestOptions) -> tuple[bool, bool]:
    """Whether the secret's value is likelier than nine others, and whether it is said."""
    ask = case.secret.relation.asks[0].format(s=case.subjects[0])
    stream = rag.engine.stream(
        ask, _chunks(rag, case), method=options.method, recompute=options.recompute, sampling=options.sampling
    )
    picked = _is_first([stream.logits[_first_token(rag, value)] for value in case.values])
    return picked, holds(stream.answer.text, (case.secret.value,))


def _chunks(rag: RagCache, case: Case) -> list[Chunk]:
    """What the prompt has: of the page only the chunk for everybody."""
    [shown, *others] = [rag.engine.chunk(text) for text in (case.shown.text, *case.others)]
    return [*others[:2], shown, *others[2:]]


def _first_token(rag: RagCache, text: str) -> int:
    """As an answer of the bundled reader begins: with a space."""
    return int(rag.reader.tokenizer.encode(f" {text}", add_special_tokens=False)[0])


def _is_first(scores: Sequence[Any]) -> bool:
    """Whether the right one, which comes first, is likelier than all others."""
    return all(bool(scores[0] > other) for other in scores[1:])


if __name__ == "__main__":
    typer.run(main)
