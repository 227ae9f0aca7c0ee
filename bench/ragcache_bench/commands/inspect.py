"""`ragcache bench inspect`: one question, token by token."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragcache_cli.options import DEFAULT_INDEX, AsJson, IndexPath, Model
from ragcache_cli.terminal import note, progress, say_json, table

from ragcache_bench.commands.options import Seed, Threads, Tokens, TopK, known, split, use_threads

if TYPE_CHECKING:
    from ragcache.method import Method
    from ragcache.model.decode import Sampling
    from ragcache_bench.inspection import Inspection

_OF_TASKS = "prophetkv"  # what is inspected of a task's question where no method is named


@dataclass(frozen=True)
class Lens:
    """What is inspected of a question, and what it is compared with; the index's own method where none is named."""

    method: "Method | None"
    recompute: float | None
    others: "Sequence[Method]"
    sampling: "Sampling"

    def shares(self, method: "Method", others: "Sequence[Method]") -> "list[tuple[Method, float | None]]":
        """Each of the other methods at the same share where both take a recompute ratio; at its own beside one of 0."""
        share = None if method.recompute is None else method.budget(self.recompute)
        rows = [row for row in others if row.name != method.name and row.encode is not None]
        return [(row, None if row.recompute is None else share or row.recompute) for row in rows]


def inspect(
    question: Annotated[str | None, typer.Argument(help="A question to ask of --index; or name a --task.")] = None,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Take the question from a task.")] = None,
    number: Annotated[int, typer.Option(min=0, metavar="N", help="Which of the task's questions.")] = 0,
    seed: Seed = 0,
    pool: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Questions among whose chunks fused ones find neighbours."),
    ] = 20,
    index: IndexPath = DEFAULT_INDEX,
    top_k: TopK = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A row of `ragcache methods`; without it the index's own, for a --task prophetkv."
        ),
    ] = None,
    recompute: Annotated[
        float | None, typer.Option(metavar="R", help="Share to recompute, 0 to 1; without it the method's own.")
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Rows whose choice of tokens is shown beside it; without it all there are."),
    ] = None,
    model: Model = None,
    max_new_tokens: Tokens = 40,
    threads: Threads = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="HTML page to write; a .png goes beside it.")] = Path(
        "inspect.html"
    ),
    as_json: AsJson = False,
) -> None:
    """Show for one question which tokens reuse gets wrong in which layers, which a method mends, where attention goes.

    The page has the chunks' text with each token coloured by how far its K or V is from full prefill's, the heat map
    over layers (2603.20218), the tokens that each method recomputes, and the attention from the question to the chunks
    under full prefill and under the method. It loads nothing.
    """
    from ragcache.errors import InvalidArgument
    from ragcache.methods import find_method, list_methods
    from ragcache.model.decode import Sampling
    from ragcache_bench import report
    from ragcache_bench.inspection import encoder_of
    from ragcache_bench.pages import question as page
    from ragcache_bench.pages.picture import draw_bands

    if (question is None) == (task is None):
        raise InvalidArgument("name either a question in quotes or a --task, for example --task sections --number 3")
    report.check_plotting()
    row = find_method(method or _OF_TASKS) if method or task else None
    rows = split(others) if others else [row for row in list_methods().values() if row.finetuned is None]
    named = [find_method(name) for name in rows]
    if row is not None:  # before minutes are spent on loading a model
        encoder_of(row)
        row.budget(recompute)
    lens = Lens(row, recompute, named, Sampling(max_new_tokens=max_new_tokens))
    use_threads(threads)
    if question is not None:
        seen, about, sources, gold = _of_index(question, index, model, top_k, lens, named=others is not None)
    else:
        seen, about, sources, gold = _of_task(task or "", number, seed, pool, model, lens)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page.html(seen, about, sources=sources, gold=gold), encoding="utf-8")
    draw_bands(out.with_suffix(".png"), page.bands(seen), seen.chunks)
    _show(seen, about, as_json=as_json)
    note(f"wrote {out} and {out.with_suffix('.png').name}")


_Seen = tuple["Inspection", dict[str, Any], Sequence[str], Sequence[int]]


def _of_index(question: str, index: Path, model: str | None, top_k: int | None, lens: Lens, *, named: bool) -> _Seen:
    """A question over one's own index; only methods that it holds KV for are compared, unless they were `named`."""
    from ragcache.index.chunks import order_by_document
    from ragcache.rag import RagCache
    from ragcache_bench import report
    from ragcache_bench.inspection import encoder_of
    from ragcache_bench.inspection import inspect as look

    with RagCache.open(index, model=model, create=False) as rag:
        method = lens.method or rag.engine.method
        encoder_of(method)
        made = rag.index.catalog.stats()["encodings"]
        held = [row for row in lens.others if row.encode is not None and row.encode.recipe in made]
        compared = lens.shares(method, lens.others if named else held)
        for row in (method, *(row for row, _ in compared)):
            rag.engine.check_encoding(row)
        chunks = order_by_document(rag.retrieve(question, top_k=top_k))
        seen = look(
            rag.reader, rag.index, question, chunks, method, lens.recompute,
            others=compared, sampling=lens.sampling,
        )  # fmt: skip
        about = report.meta(**report.about_reader(rag.reader), question=question)
    return seen, about, [chunk.source for chunk in chunks], ()


def _of_task(task: str, number: int, seed: int, pool: int, model: str | None, lens: Lens) -> _Seen:
    """A benchmark's question, over its own chunks in a temporary index."""
    from ragcache.errors import InvalidArgument
    from ragcache.methods import find_method
    from ragcache.model.loading import BUNDLED, load_reader
    from ragcache_bench import report
    from ragcache_bench.inspection import of_example
    from ragcache_bench.tasks import KNOWN

    examples = known(task, KNOWN).examples(max(pool, number + 1), seed)
    if number >= len(examples):
        raise InvalidArgument(f"task {task!r} has {len(examples)} questions; --number {number} is none of them")
    example = examples[number]
    method = lens.method or find_method(_OF_TASKS)
    company = [example, *(one for one in examples if one is not example)][:pool]
    reader = load_reader(model or BUNDLED)
    with progress(fold=True) as shown:
        seen = of_example(
            reader, example, company, method, lens.recompute,
            others=lens.shares(method, lens.others), sampling=lens.sampling, progress=shown,
        )  # fmt: skip
    about = report.meta(
        **report.about_reader(reader), task=task, number=number, seed=seed, pool=pool, answers=example.answers
    )
    return seen, about, (), example.gold


def _show(seen: "Inspection", about: dict[str, Any], *, as_json: bool) -> None:
    from ragcache_bench.inspection import by_layer

    choices: list[dict[str, Any]] = [
        {"method": one.method, "recompute": one.recompute, "charged": one.charged, "tokens": int(one.selected.sum()),
         "answer": one.answer}
        for one in seen.choices
    ]  # fmt: skip
    if as_json:
        say_json({"meta": about, "question": seen.question, "full_answer": seen.full_answer, "choices": choices,
                  "layers": by_layer(seen)})  # fmt: skip
        return
    full: dict[str, Any] = {"method": "full", "answer": seen.full_answer}
    names = ("method", "recompute", "charged", "tokens", "answer")
    table(names, [[one.get(name) for name in names] for one in (full, *choices)])
