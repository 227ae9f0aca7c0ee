"""`ragcache bench admit` and `bench findings`: what the benchmark's figures may be taken to mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcache_cli.bench_options import Threads, known, split, use_threads
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, progress, say, say_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragcache.evaluate.tasks import Example

Tasks = Annotated[str | None, typer.Option(metavar="A,B", help="Tasks, separated by commas; without it all of them.")]
Seed = Annotated[int, typer.Option(metavar="S", help="Of the questions.")]
Model = Annotated[str, typer.Option(metavar="NAME", help="Hub id or folder of the model.")]
Dtype = Annotated[str, typer.Option(metavar="DTYPE", help="auto, float32, bfloat16 or float16.")]
Tokens = Annotated[int, typer.Option("--max-new-tokens", min=1, metavar="N", help="Most tokens of an answer.")]


def admit(
    tasks: Tasks = None,
    n: Annotated[int, typer.Option("--n", min=1, metavar="N", help="Questions per task.")] = 100,
    seed: Seed = 0,
    random_seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds of the random control.")] = 3,
    control_reader: Annotated[
        str | None, typer.Option(metavar="NAME", help="Second reader, trained half on chunks that see only themselves.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSONL of answers to take and add to; by default beside --out.")
    ] = None,
    model: Model = "bundled",
    dtype: Dtype = "auto",
    max_new_tokens: Tokens = 40,
    threads: Threads = None,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Processes that answer; each loads the model.")] = 1,
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
    from functools import partial

    from ragcache.evaluate import report
    from ragcache.evaluate.admission import Admitting, Rule, markdown
    from ragcache.evaluate.workers import Workers
    from ragcache.model.decode import Sampling
    from ragcache.rag import load_reader

    examples = _examples(tasks, n, seed, twins=True)
    use_threads(threads)
    reader = load_reader(model, dtype=dtype)
    control = load_reader(control_reader, dtype=dtype) if control_reader else None
    hands = [Workers(partial(load_reader, name, dtype=dtype), workers, threads or 1) if workers > 1 else None
             for name in (model, control_reader or model)]  # fmt: skip
    with progress() as shown:
        work = Admitting(reader, answers or out.with_suffix(".jsonl"), Rule(), control, tuple(range(random_seeds)),
                         Sampling(max_new_tokens=max_new_tokens), shown, *hands)  # fmt: skip
        judged = work.judge(examples)
    about = report.meta(**report.about_reader(reader), n=n, seed=seed, random_seeds=random_seeds, rule=vars(Rule()),
                        control_reader=control.name if control else None, max_new_tokens=max_new_tokens)  # fmt: skip
    content = {"meta": about, "rows": [one.as_dict() for one in judged]}
    _write(out, content, f"{_made_by(about)}\n{markdown(judged, Rule())}", as_json=as_json)


def findings(
    only: Annotated[str, typer.Option(metavar="A,B", help="Findings to look for again: a, b, c, d.")] = "a,b,c,d",
    tasks: Annotated[
        str, typer.Option(metavar="A,B", help="Tasks for a and b, separated by commas.")
    ] = "sections,sections-twin,corpus-section",
    fusion_tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Tasks for c; without it those meant to need other chunks.")
    ] = None,
    answers: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="For d: the .jsonl of answers of a quality run.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, metavar="N", help="Questions per task.")] = 50,
    seed: Seed = 0,
    model: Model = "bundled",
    dtype: Dtype = "auto",
    max_new_tokens: Tokens = 40,
    threads: Threads = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md and the measurements' .jsonl go beside it.")
    ] = Path("findings.json"),
    as_json: AsJson = False,
) -> None:
    """Look for the literature's findings again on any reader: confirmed or not, with figures.

    a: the first tokens of every chunk dominate early key deviation. b: few chosen tokens stay chosen in all layers.
    c: fused encoding is worth more than the selector, and its ablation. d: answers right by reuse and wrong by full
    prefill, from a quality run. A run that was interrupted resumes.
    """
    from ragcache.evaluate import report
    from ragcache.evaluate.findings import LETTERS, Looking, at_answers, markdown
    from ragcache.evaluate.notes import Notes
    from ragcache.evaluate.tasks import TASKS
    from ragcache.model.decode import Sampling
    from ragcache.rag import load_reader

    letters = [known(letter, LETTERS) for letter in split(only)]
    fusion_tasks = fusion_tasks or ",".join(name for name, task in TASKS.items() if task.needs)
    use_threads(threads)
    reader = load_reader(model, dtype=dtype)
    with progress() as shown:
        look = Looking(reader, Notes(out.with_suffix(".jsonl")), Sampling(max_new_tokens=max_new_tokens), shown)
        found = look.at_keys(letters, _examples(tasks, n, seed))
        found += look.at_fusion(_examples(fusion_tasks, n, seed)) if "c" in letters else []
        found += [at_answers(answers)] if "d" in letters and answers else []
    if "d" in letters and not answers:
        note("finding d is left out; name the answers of a quality run with --from")
    about = report.meta(**report.about_reader(reader), tasks=tasks, fusion_tasks=fusion_tasks, n=n, seed=seed,
                        answers=str(answers) if answers else None, max_new_tokens=max_new_tokens)  # fmt: skip
    content = {"meta": about, "findings": [one.as_dict() for one in found]}
    _write(out, content, f"{_made_by(about)}\n{markdown(found)}", as_json=as_json)


def _examples(names: str | None, n: int, seed: int, *, twins: bool = False) -> "dict[str, Sequence[Example]]":
    """Questions by task; with `twins`, a task brings its twin."""
    from ragcache.evaluate.tasks import TASKS

    asked = split(names) if names else list(TASKS)
    more = [f"{name}-twin" for name in asked if twins and f"{name}-twin" in TASKS]
    return {name: known(name, TASKS).examples(n, seed) for name in dict.fromkeys([*asked, *more])}


def _made_by(about: dict[str, Any]) -> str:
    return f"Made by `{about['command']}` with the reader `{about['reader']}` on {about['hardware']}.\n"


def _write(out: Path, content: dict[str, Any], page: str, *, as_json: bool) -> None:
    import json

    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(page, encoding="utf-8")
    if as_json:
        say_json(content)
    else:
        say(page)
    note(f"wrote {out}, {out.with_suffix('.md')}")
