"""A title as a line, or as a sentence the model was trained on? What naive reuse makes of either.

The tables of titles put a chunk's title above it as a line of its own, as practitioners do. The built-in test model
was trained on pages that begin "This page is about NAME.", and on no bare titles, so it may read only one of the two:

    python bench/studies/title_wordings.py --n 100 --seed 31 --out docs/benchmarks/title-wordings.json
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from ragcache_bench import report
from ragcache_bench.commands import options
from ragcache_bench.commands.options import bench, known, split
from ragcache_bench.contenders import contenders
from ragcache_bench.table import Result, tabulate
from ragcache_bench.tasks import KNOWN
from ragcache_bench.tasks.example import Example, add_titles

SENTENCE = "This page is about {}. {}"


def as_sentence(example: Example) -> Example:
    """The title line of each chunk as a sentence in front of its text; a header says so already."""
    titled = add_titles(example)
    said = {
        text: text if text == with_title or text.startswith("This page is about") else _sentence(text, with_title)
        for text, with_title in zip(example.chunks, titled.chunks, strict=True)
    }
    pages = tuple(tuple(said.get(text, text) for text in page) for page in example.pages)
    return replace(example, chunks=tuple(said[text] for text in example.chunks), pages=pages, titles=())


def _sentence(text: str, with_title: str) -> str:
    return SENTENCE.format(with_title.removesuffix(f"\n{text}"), text)


WORDINGS: dict[str, Callable[[Example], Example]] = {
    "no title": lambda example: example,
    "a line": add_titles,
    "a sentence": as_sentence,
}


def main(
    tasks: Annotated[str, typer.Option(help="Tasks by name, separated by commas.")] = "sections,pronouns,labels",
    n: options.Count = 100,
    seed: options.Seed = 31,
    model: options.Reader = None,
    out: Annotated[Path, typer.Option(help="JSON to write; the table goes beside it.")] = Path("titles.json"),
) -> None:
    """Ask full prefill and naive reuse under each wording, and write the table."""
    examples = {
        f"{name}, {wording}": [write(example) for example in known(name, KNOWN).examples(n, seed)]
        for name in split(tasks)
        for wording, write in WORDINGS.items()
    }
    with bench(out.with_suffix(".jsonl"), model, "auto", 40, 1, together=True) as asked:
        records = asked.answers(examples, list(contenders(["full", "naive"], [], (0,), ())))
        about = report.meta(**report.about_reader(asked.reader), n=n, seed=seed, tasks=split(tasks))
    report.write(out, Result(tabulate(records), about))


if __name__ == "__main__":
    typer.run(main)
