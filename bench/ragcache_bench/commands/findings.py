"""`ragcache bench admit` and `bench findings`: what the benchmark's figures may be taken to mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, say, say_json

from ragcache_bench.commands import options as options
from ragcache_bench.commands.options import bench, known, split, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragcache_bench.tasks import Example

_LETTERS = "abcdefghijkl"


def admit(
    tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Tasks by name, separated by commas; without it all of them.")
    ] = None,
    n: options.Count = 100,
    seed: options.Seed = 0,
    random_seeds: options.RandomSeeds = 5,
    control_reader: Annotated[
        str | None, typer.Option(metavar="NAME", help="Second reader, trained half on chunks that see only themselves.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSONL of answers to take and add to; by default beside --out.")
    ] = None,
    model: options.Reader = None,
    dtype: options.Dtype = "auto",
    max_new_tokens: options.Tokens = 40,
    threads: options.Threads = None,
    workers: options.Workers = 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md and the answers' .jsonl go beside it.")
    ] = Path("admission.json"),
    as_json: AsJson = False,
) -> None:
    """Say which tasks need other chunks, which are self-contained, and for which the reader is too weak.

    A task is admitted if naive reuse loses on it, random tokens and the chunks' first tokens do not mend it, the loss
    outlives a question blind to the chunks' first tokens and a second reader, and its self-contained twin loses
    nothing. A run that was interrupted resumes.
    """
    from dataclasses import replace
    from functools import partial

    from ragcache.model.loading import load_reader
    from ragcache_bench import report
    from ragcache_bench.admission import Rule, markdown
    from ragcache_bench.admission import admit as judge

    examples = _examples(tasks, n, seed, twins=True)
    with bench(answers or out.with_suffix(".jsonl"), model, dtype, max_new_tokens, threads, workers) as first:
        control = None
        if control_reader:
            load = partial(load_reader, control_reader, dtype=dtype)
            control = replace(first, reader=load(), workers=first.workers and replace(first.workers, load=load))
        judged = judge(first, examples, Rule(), seeds=range(random_seeds), control=control)
        about = report.meta(
            **report.about_reader(first.reader), n=n, seed=seed, random_seeds=random_seeds, rule=vars(Rule()),
            control_reader=control.reader.name if control else None, max_new_tokens=max_new_tokens,
        )  # fmt: skip
    content = {"meta": about, "rows": [one.as_dict() for one in judged]}
    _show(out, content, markdown(judged, Rule()), as_json=as_json)


def findings(
    only: Annotated[str, typer.Option(metavar="A,B", help="Findings to look for again: a to l.")] = ",".join(_LETTERS),
    tasks: Annotated[
        str, typer.Option(metavar="A,B", help="Tasks for a, b, j and k, separated by commas.")
    ] = "sections,sections-twin,corpus-section",
    fusion_tasks: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Tasks for c, e to i and l; without it those meant to need other chunks."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="For d: the .jsonl of answers of a quality run.")
    ] = None,
    n: options.Count = 50,
    seed: options.Seed = 0,
    model: options.Reader = None,
    dtype: options.Dtype = "auto",
    max_new_tokens: options.Tokens = 40,
    threads: options.Threads = None,
    workers: options.Workers = 1,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md and the measurements' .jsonl go beside it.")
    ] = Path("findings.json"),
    as_json: AsJson = False,
) -> None:
    """Look for the literature's findings again on any reader: confirmed or not, with figures.

    a: the first tokens of every chunk dominate early key deviation. b: few chosen tokens stay chosen in all layers.
    c: fused encoding is worth more than the selector, and its ablation. d: answers right by reuse and wrong by full
    prefill, from a quality run. e: one attention sink is better than many. f: PSR is above its parts. g: late layers
    choose other tokens than early ones need. h: choosing again takes states with context. i, j: a small model chooses
    well, and looks where the primary looks. k: it does so most in the last layers. l: neighbours are retrieved
    together. A run that was interrupted resumes.
    """
    from ragcache_bench import findings as looked
    from ragcache_bench import report
    from ragcache_bench.tasks import TASKS

    letters = [known(letter, {letter: letter for letter in _LETTERS}) for letter in split(only)]
    fusion_tasks = fusion_tasks or ",".join(name for name, task in TASKS.items() if task.needs)
    with bench(out.with_suffix(".jsonl"), model, dtype, max_new_tokens, threads, workers) as asked:
        found = looked.at_keys(asked, letters, _examples(tasks, n, seed))
        found += looked.at_fusion(asked, _examples(fusion_tasks, n, seed)) if "c" in letters else []
        found += [looked.at_answers(answers)] if "d" in letters and answers else []
        found += looked.at_choices(asked, letters, _examples(fusion_tasks, n, seed))
        found += [looked.at_gaze(asked, _examples(tasks, n, seed))] if "j" in letters else []
        found += [looked.at_layers(asked, _examples(tasks, n, seed))] if "k" in letters else []
        found += [looked.at_neighbours(asked, _examples(fusion_tasks, n, seed))] if "l" in letters else []
        about = report.meta(
            **report.about_reader(asked.reader), tasks=tasks, fusion_tasks=fusion_tasks, n=n, seed=seed,
            answers=str(answers) if answers else None, max_new_tokens=max_new_tokens,
        )  # fmt: skip
    if "d" in letters and not answers:
        note("finding d is left out; name the answers of a quality run with --from")
    content = {"meta": about, "findings": [one.as_dict() for one in found]}
    _show(out, content, looked.markdown(found), as_json=as_json)


def _examples(names: str | None, n: int, seed: int, *, twins: bool = False) -> "dict[str, Sequence[Example]]":
    """Questions by task; with `twins`, a task brings its twin."""
    from ragcache_bench.tasks import KNOWN, TASKS

    asked = split(names) if names else list(TASKS)
    more = [f"{name}-twin" for name in asked if twins and f"{name}-twin" in KNOWN]
    return {name: known(name, KNOWN).examples(n, seed) for name in dict.fromkeys([*asked, *more])}


def _show(out: Path, content: dict[str, Any], tables: str, *, as_json: bool) -> None:
    from ragcache_bench.markdown import made_by

    write(out, content)
    page = f"{made_by(content['meta'])}\n{tables}"
    out.with_suffix(".md").write_text(page, encoding="utf-8")
    if as_json:
        say_json(content)
    else:
        say(page)
    note(f"wrote {out}, {out.with_suffix('.md')}")
