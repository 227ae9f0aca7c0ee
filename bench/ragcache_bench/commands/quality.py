"""`ragcache bench quality`: how good each method answers, with the controls that keep the figures honest."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragcache_cli.options import AsJson, Auxiliary
from ragcache_cli.terminal import note, progress, say

from ragcache_bench.commands import options as options
from ragcache_bench.commands.options import bench, known, numbers, show, split, use_threads, with_auxiliary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragcache.method import Method
    from ragcache_bench.tasks import Example, Task

METHODS = "auto,prefix,naive,link0,epic,cacheblend,fusionrag,prophetkv"
_ROW = ("task", "method", "recompute", "charged", "score", "delta", "ci_low", "ci_high", "sub_em", "agreement", "kl")
_OWN = (
    "method", "recompute", "charged", "score", "f1", "agreement", "agreement_low", "agreement_high", "ttft_ms",
    "ttft_ratio",
)  # fmt: skip
QUICK = 12  # questions per task


@dataclass(frozen=True)
class Setup:
    """Who takes part, and how they answer: what every benchmark of answers is told."""

    names: "Sequence[str | Method]"
    budgets: list[float]
    seeds: tuple[int, ...]
    n: int
    model: str | None
    dtype: str
    max_new_tokens: int
    threads: int | None
    out: Path
    auxiliary: str | None = None
    adapter: str | None = None
    controls: "Sequence[str] | None" = None
    """Rows that take part unasked; None for those of every table."""

    def about(self) -> dict[str, Any]:
        """For a result's meta; KV is read from memory but for the first contender of each question."""
        return {
            "budgets": self.budgets, "random_seeds": self.seeds, "max_new_tokens": self.max_new_tokens,
            "memory_tier": True, **({"auxiliary": self.auxiliary} if self.auxiliary else {}),
        }  # fmt: skip


@dataclass(frozen=True)
class QualitySettings:
    """The options of `ragcache bench quality`."""

    tasks: options.Tasks = None
    data: options.Data = None
    chunks: options.Passages = None
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own questions instead, JSONL, over your own --index.")
    ] = None
    index: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the index that --questions are asked of.")
    ] = None
    methods: options.Methods = METHODS
    auxiliary: Auxiliary = None
    budgets: options.Budgets = options.BUDGETS
    n: options.Count = 200
    seed: options.Seed = 0
    random_seeds: options.RandomSeeds = 5
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 12 questions per task, one budget, fewer rows.")
    ] = False
    model: options.Reader = None
    adapter: options.Adapter = None
    dtype: options.Dtype = "auto"
    top_k: options.TopK = None
    safe: Annotated[
        float,
        typer.Option(
            min=0.5, max=0.999, metavar="R", help="With --questions: least share of full prefill's own answers to show."
        ),
    ] = 0.98
    max_new_tokens: options.Tokens = 40
    workers: options.Workers = 1
    threads: options.Threads = None
    together: Annotated[
        bool,
        typer.Option("--together", help="Let all answer a question at once, in fewer forwards; nothing is timed."),
    ] = False
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; .md, .png and the answers' .jsonl go beside it.")
    ] = Path("quality.json")
    kvpress: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write each row there too, as a result folder of NVIDIA's kvpress."),
    ] = None
    as_json: AsJson = False

    @property
    def setup(self) -> Setup:
        """Who takes part, and how they answer."""
        names = ["auto", "cacheblend", "fusionrag", "prophetkv"] if self.quick else split(self.methods)
        setup = Setup(
            with_auxiliary(names, self.auxiliary), numbers(self.budgets, float), tuple(range(self.random_seeds)),
            self.n, self.model, self.dtype, self.max_new_tokens, self.threads, self.out, self.auxiliary,
            self.adapter,
        )  # fmt: skip
        if not self.quick:
            return setup
        return replace(setup, budgets=[0.15], seeds=(0,), n=QUICK)


@options.taken_from(QualitySettings)
def quality(settings: QualitySettings) -> None:
    """Answer questions with every method and budget; write table and picture.

    The controls full, naive, random and epic always take part, and so do the references evidence and true-deviation,
    which know more than a method may. Rows that take a tuned model take part where --adapter names one that was tuned
    for them. Where chunks have titles, full, naive and auto also answer with the title as each
    chunk's first line (full+title, ...); any other row does if it is named so. A run that was interrupted resumes. With
    --workers each process has one thread, unless --threads says otherwise.

    With --questions FILE --index DIR the questions are yours, one JSON object a line: {"question": "...", "answers":
    ["..."], "chunks": ["chunk id"]}. Where no answers are given, full prefill's own is the one to agree with; where no
    chunks are named, they are retrieved. The index's method at its own share, the controls full, naive and random, and
    what recomputes nothing always take part; of KV that the index lacks, the controls' is made for the run, and the
    rest is left out by name. The last line says which method and budget to use: one whose 95 % interval of agreement
    with full prefill lies at --safe or above, which takes 189 questions at 0.98 and 35 at 0.9. It says so if there are
    too few.
    """
    notes: list[str] = []
    if settings.questions is None:
        _refuse("belongs to --questions; name a FILE with it", index=settings.index, top_k=settings.top_k)
        chosen = chosen_tasks(settings.tasks, settings.data or [], settings.chunks)
        on_tasks(
            settings.setup, chosen, settings.seed, settings.workers,
            together=settings.together, kvpress=settings.kvpress,
        )  # fmt: skip
    else:
        notes = on_own(settings, settings.questions)
    from ragcache_bench.pages.columns import remarks

    content = json.loads(settings.out.read_text(encoding="utf-8"))
    show(content, _OWN if settings.questions else _ROW, as_json=settings.as_json)
    if "recommendation" in content["meta"] and not settings.as_json:
        for line in [*notes, content["meta"]["recommendation"]["words"]]:
            say(f"{line[0].upper()}{line[1:]}.")
    for line in remarks(content["meta"]):
        note(line)
    note(f"wrote {settings.out} and its .md, .png and .jsonl")


def on_tasks(
    setup: Setup,
    chosen: "Mapping[str, Task]",
    seed: int,
    workers: int,
    *,
    together: bool = False,
    kvpress: Path | None = None,
) -> None:
    """Run the tasks, and write what comes out; into the folder `kvpress` too, as kvpress keeps its results."""
    from ragcache_bench import report
    from ragcache_bench.contenders import UNASKED, contenders, left_out, untuned, with_defaults
    from ragcache_bench.datasets import Public
    from ragcache_bench.kvpress import Asked, write_results
    from ragcache_bench.lengths import check_lengths
    from ragcache_bench.pareto import pooled, pools
    from ragcache_bench.table import Result, by_gap, tabulate
    from ragcache_bench.tasks import KNOWN

    report.check_plotting()
    report.check_out(setup.out, [task.path for task in chosen.values() if isinstance(task, Public)])
    unasked = UNASKED if setup.controls is None else setup.controls
    field = with_defaults(contenders(setup.names, setup.budgets, setup.seeds, unasked))
    how = (setup.model, setup.dtype, setup.max_new_tokens, setup.threads, workers)
    with bench(setup.out.with_suffix(".jsonl"), *how, together=together, adapter=setup.adapter) as asked:
        refused = untuned((who.method for who in field), asked.reader)
        field = [who for who in field if who.method.name not in refused]
        examples = {name: task.examples(setup.n, seed) for name, task in chosen.items()}
        warned = _warned(chosen, examples)
        check_lengths(examples, field, asked.reader, asked.sampling)
        records = asked.answers(examples, field)
        about = report.meta(
            **report.about_reader(asked.reader), **setup.about(), n=setup.n, seed=seed, workers=workers,
            together=together, tasks={name: repr(task) for name, task in chosen.items()},
            absent=left_out(field, asked.reader.tuning), untuned=refused, warnings=warned,
        )  # fmt: skip
    chance = {name: value for name, task in chosen.items() if (value := getattr(task, "chance", None)) is not None}
    rows, needs = tabulate(records, chance), {name: task.needs for name, task in chosen.items() if name in KNOWN}
    report.write(setup.out, Result(rows, about, pooled(rows, pools(needs)), by_gap(records)))
    if kvpress is not None:
        write_results(kvpress, records, {name: Asked(chosen[name], examples[name]) for name in chosen}, about)


def on_own(settings: QualitySettings, questions: Path) -> list[str]:
    """Ask the user's own questions of the user's own index; what to say of who took part and who did not.

    Methods that the index holds no KV for are left out, unless they were named.
    """
    from ragcache.errors import InvalidArgument
    from ragcache.rag import RagCache
    from ragcache_bench import report
    from ragcache_bench import user_questions as own
    from ragcache_bench.advice import line_up
    from ragcache_bench.records import Journal
    from ragcache_bench.table import Result, tabulate, withhold_times

    _refuse(
        "means nothing to --questions; leave it out",
        tasks=settings.tasks, data=settings.data, chunks=settings.chunks, workers=settings.workers > 1,
        together=settings.together, kvpress=settings.kvpress,
    )  # fmt: skip
    setup, index, safe = settings.setup, settings.index, settings.safe
    if index is None:
        raise InvalidArgument("--questions are asked of an index; name it with --index DIR")
    report.check_plotting()
    report.check_out(setup.out, [questions])
    asked = own.read(questions)
    use_threads(setup.threads)
    dtype = None if setup.dtype == "auto" else setup.dtype
    with (
        RagCache.open(index, model=setup.model, adapter=setup.adapter, dtype=dtype, create=False) as rag,
        progress() as shown,
    ):
        those = line_up(
            rag, setup.names, setup.budgets, setup.seeds, named=settings.methods != METHODS and not settings.quick
        )
        journal, top_k = Journal(setup.out.with_suffix(".jsonl")), settings.top_k or rag.top_k
        records = own.run(
            rag, asked, those.field, journal, top_k=top_k, max_new_tokens=setup.max_new_tokens, progress=shown
        )
        table = list(withhold_times(Result(tabulate(records), {})).rows)
        about = report.meta(
            **report.about_reader(rag.reader), **setup.about(), questions=len(asked), top_k=top_k, safe=safe,
            **those.about(), recommendation=those.advise(table, safe).as_dict(),
        )  # fmt: skip
    report.write(setup.out, Result(table, about))
    return those.notes()


def chosen_tasks(tasks: str | None, data: "Sequence[str]", chunks: int | None = None) -> "dict[str, Task]":
    """Tasks by name, public sets behind the generated ones; all generated ones where nothing is named."""
    from ragcache_bench.datasets import choose, unasked
    from ragcache_bench.tasks import KNOWN, TASKS

    wanted = split(tasks) if tasks is not None else [] if data else list(TASKS)
    for spec in data:
        if names := unasked(spec):
            note(f"{spec}: left out {', '.join(names)}, which ask no question")
    return {name: known(name, KNOWN) for name in wanted} | choose(data, chunks)


def _warned(chosen: "Mapping[str, Task]", examples: "Mapping[str, Sequence[Example]]") -> dict[str, tuple[str, ...]]:
    """What the public sets' cards warn of, by task; the user is told now, before hours are spent."""
    from ragcache_bench.datasets import card
    from ragcache_bench.tasks import KNOWN

    found = {name: card(examples[name]).warnings for name in chosen if name not in KNOWN}
    for name, warnings in found.items():
        for warning in warnings:
            note(f"{name}: {warning}")
    return {name: warnings for name, warnings in found.items() if warnings}


def _refuse(reason: str, **given: object) -> None:
    from ragcache.errors import InvalidArgument

    for name in (name for name, value in given.items() if value):
        raise InvalidArgument(f"--{name.replace('_', '-')} {reason}")
