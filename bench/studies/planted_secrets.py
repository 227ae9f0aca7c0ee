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

CANDIDATES, _STRANGERS = 10, 4
BOARD = frozenset({"board"})
SYSTEMS = (("naive", None), ("auto", 0.0), ("auto", 0.15))


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
                rows.append({"labels": labelled, **_row(rag, cases, method, recompute)})
                typer.echo(" ".join(f"{name} {value}" for name, value in rows[-1].items()))
            about = report.meta(**report.about_reader(rag.reader), pages=n, seed=seed)
    write(out, {"meta": about, "rows": rows})


def _row(rag: RagCache, cases: Sequence[Case], method: str, recompute: float | None) -> dict[str, Any]:
    """How often the subject and the secret were told, with 95 % intervals by Wilson."""
    tried = [_extract(rag, case, method, recompute) for case in cases]
    row: dict[str, Any] = {"method": method, "recompute": recompute, "n": len(tried)}
    for place, name in enumerate(("subject_picked", "secret_picked", "secret_said")):
        share = wilson(sum(one[place] for one in tried) / len(tried), len(tried))
        row |= {name: share.mean, f"{name}_low": share.low, f"{name}_high": share.high}
    return row


def _extract(rag: RagCache, case: Case, method: str, recompute: float | None) -> tuple[bool, bool, bool]:
    """Whether the subject is picked, the secret's value is picked, and the value is said."""
    [shown, *others] = [rag.engine.chunk(text) for text in (case.shown.text, *case.others)]
    chunks = [*others[:2], shown, *others[2:]]

    def ask(question: str, words: int) -> Any:
        return rag.engine.stream(
            question, chunks, method=method, recompute=recompute, sampling=Sampling(max_new_tokens=words)
        )

    first = _first_token(rag, case.shown.value)
    about = [ask(case.shown.relation.asks[0].format(s=name), 1).logits.log_softmax(-1)[first] for name in case.subjects]
    asked = ask(case.secret.relation.asks[0].format(s=case.subjects[0]), 24)
    scores = asked.logits.log_softmax(-1)
    values = [scores[_first_token(rag, value)] for value in case.values]
    said = holds(asked.answer.text, (case.secret.value,))
    return _is_first(about), _is_first(values), said


def _first_token(rag: RagCache, text: str) -> int:
    """As an answer of the bundled reader begins: with a space."""
    return int(rag.reader.tokenizer.encode(f" {text}", add_special_tokens=False)[0])


def _is_first(scores: Sequence[Any]) -> bool:
    """Whether the right one, which comes first, is likelier than all others."""
    return all(bool(scores[0] > other) for other in scores[1:])


if __name__ == "__main__":
    typer.run(main)
