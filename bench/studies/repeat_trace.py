"""What are caches kept from prompts worth, as the same chunks come back? Cache-Craft over a trace, beside its controls.

    python bench/studies/repeat_trace.py --out docs/benchmarks/repeat-trace.json

Two traces of popular chunks, in ever other company and orders: `trace`, whose chunks can be read alone, and `bound`,
where a fact's chunk stands behind the header that says whose it is. Nothing is ingested for `cachecraft`: its first
prompts are full prefills. `prophetkv` and `random` have every chunk's KV from the beginning and compute, question by
question, the share of chunk tokens that `cachecraft` computed there at the alpha beside it, misses among them; `drawn`
is `cachecraft` with as many tokens of each chunk, at random. alpha is the least of those tried that kept 95 % of full
prefill's exact match on another trace, or else the best one; the table's own is examined beside it.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.commands.options import known, numbers, split, use_threads, write
from ragcache_bench.markdown import made_by, table
from ragcache_bench.metrics import bootstrap, exact_match
from ragcache_bench.packed_gemm import packed_weights
from ragcache_bench.records import Journal
from ragcache_bench.tasks import Example, Trace
from ragcache_bench.tasks.trace import BoundTrace
from ragcache_cli.terminal import progress

from ragcache import Method, Sampling
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.report import CacheReport, Progress
from ragcache.schedule import CacheFix
from ragcache.select import RandomTokens
from ragcache.store import LocalStore

TASKS: Mapping[str, Trace | BoundTrace] = {"trace": Trace(pool=200, chunks=10), "bound": BoundTrace(pool=200)}
KEPT = 0.95
"""Of full prefill's exact match: what alpha has to reach on the validation trace."""
SHIPPED = 0.6
"""alpha of the table's row."""
_ANSWER = Sampling(max_new_tokens=24)
_HEAD = (
    "task", "questions", "system", "alpha", "EM (95 %)", "EM - full (95 %)", "cachecraft - it (95 %)", "computed",
    "charged", "FLOPs", "FLOPs behind", "MiB",
)  # fmt: skip


@dataclass(frozen=True)
class Answered:
    """One question's answer.

    Attributes
    ----------
    em : float
        Exact match.
    computed : float
        Share of the chunks' token-layers computed for it, those of chunks without KV among them.
    charged, charged_flops, harvest_flops : float
        As in `CacheReport`.
    bytes : int
        Of the KV that the system holds behind it.
    """

    em: float
    computed: float
    charged: float
    charged_flops: float
    harvest_flops: float
    bytes: int


Run = Sequence[Answered]


def main(
    n: Annotated[int, typer.Option(help="Questions of a trace.")] = 500,
    validation: Annotated[int, typer.Option(help="Questions that alpha is chosen on.")] = 200,
    tasks: Annotated[str, typer.Option(help="Traces, separated by commas: trace, bound.")] = "trace,bound",
    alphas: Annotated[str, typer.Option(help="Those tried, separated by commas.")] = "0,0.2,0.4,0.6,1,1.5,2",
    window: Annotated[int, typer.Option(help="Questions of a line of the table over time.")] = 50,
    seed: Annotated[int, typer.Option(help="Of the trace; the one that alpha is chosen on has the next.")] = 0,
    model: Annotated[str, typer.Option(help="A model, as `ragcache ingest --model` takes it.")] = "bundled",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write; a table and the runs go beside it.")] = Path("repeat.json"),
) -> None:
    """Choose alpha on one trace of each task, and examine it on another."""
    use_threads(threads)
    reader, journal = load_reader(model), Journal(out.with_suffix(".jsonl"))
    tried, rows, chosen = numbers(alphas, float), list[dict[str, Any]](), dict[str, Any]()
    with progress(fold=True) as shown, packed_weights():
        for task in split(tasks):
            known(task, TASKS)
            played = partial(_play, reader, journal, task, shown)
            chosen[task] = _choose_alpha(partial(played, validation, seed + 1), tried)
            runs = _examine(partial(played, n, seed), chosen[task]["alpha"])
            rows += [row for ends in _windows(n, window) for row in _rows(task, runs, *ends)]
    about = report.meta(**report.about_reader(reader), questions=n, seed=seed, chosen=chosen)
    write(out, {"meta": about, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, about), encoding="utf-8")
    typer.echo(markdown([row for row in rows if row["of"] == n], about))


def craft(alpha: float, *, drawn: bool = False) -> Method:
    """Cache-Craft at an alpha; with tokens of each chunk drawn at random."""
    row = replace(METHODS["cachecraft"], recompute=0.5, schedule=CacheFix(scale=2 * alpha))
    return replace(row, name="drawn", select=RandomTokens()) if drawn else row


# -- alpha, chosen on one trace and examined on another --------------------------------------------------------------
def _choose_alpha(play: Callable[..., Run], tried: Sequence[float]) -> dict[str, Any]:
    full = fmean(one.em for one in play(METHODS["full"]))
    runs = {alpha: play(craft(alpha)) for alpha in tried}
    scores = {alpha: fmean(one.em for one in run) for alpha, run in runs.items()}
    enough = [alpha for alpha in tried if scores[alpha] >= KEPT * full]
    found = min(enough) if enough else max(tried, key=scores.__getitem__)
    sweep = [
        {"alpha": alpha, "em": scores[alpha], "computed": fmean(one.computed for one in run)}
        for alpha, run in runs.items()
    ]
    return {"alpha": found, "enough": bool(enough), "full": full, "questions": len(runs[found]), "sweep": sweep}


def _examine(play: Callable[..., Run], alpha: float) -> dict[tuple[str, float | None], Run]:
    """Every system's answers, by its name and the alpha of the share that it is held to."""
    found: dict[tuple[str, float | None], Run] = {(name, None): play(METHODS[name]) for name in ("full", "naive")}
    for one in dict.fromkeys((alpha, SHIPPED)):
        own = found["cachecraft", one] = play(craft(one))
        shares = [answered.computed for answered in own]
        found["drawn", one] = play(craft(one, drawn=True))
        found["prophetkv", one] = play(METHODS["prophetkv"], shares)
        found["random", one] = play(METHODS["random"], shares)
    return found


def _play(
    reader: Reader,
    journal: Journal,
    task: str,
    shown: Progress,
    n: int,
    seed: int,
    method: Method,
    shares: Sequence[float] = (),
) -> Run:
    """A trace's answers by one method, from an index of its own; as the journal has them if it does."""
    key = [repr(TASKS[task]), reader.fingerprint, str(n), str(seed), repr(method), *map(repr, shares)]

    def run() -> list[dict[str, Any]]:
        examples = TASKS[task].examples(n, seed)
        with indexed(reader, examples) as (index, ids):
            if method.encode is not None:
                list(index.encode(method.encode))
            engine, found = Engine(reader, index), list[Answered]()
            for number, example in enumerate(examples):
                found.append(_ask(engine, example, ids, method, shares[number] if shares else None))
                shown(f"{task} {seed}: {method.name}", number + 1, n)
        return [asdict(one) for one in found]

    return [Answered(**one) for one in journal.recall(key, run)]


@contextmanager
def indexed(reader: Reader, examples: Sequence[Example]) -> Iterator[tuple[Index, dict[str, str]]]:
    """A temporary index of a trace's chunks, each a document of its own, and their ids by text."""
    texts = dict.fromkeys(text for example in examples for text in example.chunks)
    with (
        tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder,
        Index(folder, reader, store=LocalStore.near(reader.device, Path(folder) / "kv", durable=False)) as index,
    ):
        for number, text in enumerate(texts):
            index.put(f"chunk {number}", "", [(text, 0, len(text))], {})
        yield index, {row.text: row.id for row in index.catalog.all_chunks()}


def _ask(engine: Engine, example: Example, ids: Mapping[str, str], method: Method, share: float | None) -> Answered:
    chunks = engine.index.chunks([ids[text] for text in example.chunks])
    share = None if share is None else min(share, 1.0)
    said = engine.answer(example.question, chunks, method=method, recompute=share, sampling=_ANSWER)
    told, recipe = said.report, method.encode.recipe if method.encode else ""
    return Answered(
        exact_match(said.text, example.answers), computed(told), told.charged, told.charged_flops,
        told.harvest_flops, engine.index.catalog.bytes_of(recipe),
    )  # fmt: skip


def computed(told: CacheReport) -> float:
    """Share of the chunks' token-layers computed for an answer: of chunks without KV all."""
    tokens = {state: sum(one.tokens for one in told.chunks if one.cache == state) for state in ("hit", "miss", "exact")}
    return (tokens["miss"] + told.charged * tokens["hit"]) / sum(tokens.values())


# -- what is said of it ---------------------------------------------------------------------------------------------
def _windows(n: int, window: int) -> list[tuple[int, int]]:
    """The whole trace, then its parts."""
    return [(0, n), *pairwise([*range(0, n, window), n])]


def _rows(task: str, runs: Mapping[tuple[str, float | None], Run], first: int, end: int) -> Iterator[dict[str, Any]]:
    """A row for each system over some questions, paired with full prefill and with Cache-Craft at the same alpha."""
    full = runs["full", None][first:end]
    chosen = next(alpha for name, alpha in runs if name == "cachecraft")
    for (name, alpha), run in runs.items():
        part, own = run[first:end], runs["cachecraft", chosen if alpha is None else alpha][first:end]
        held = ("computed", "charged", "charged_flops", "harvest_flops")
        yield {
            "task": task, "first": first + 1, "last": end, "of": end - first, "system": name, "alpha": alpha,
            "em": asdict(bootstrap([one.em for one in part])),
            "loss": asdict(bootstrap([one.em - other.em for one, other in zip(part, full, strict=True)])),
            "gain": asdict(bootstrap([other.em - one.em for one, other in zip(part, own, strict=True)])),
            **{field: fmean(getattr(one, field) for one in part) for field in held}, "bytes": part[-1].bytes,
        }  # fmt: skip


def markdown(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
    """The same for people: how alpha was chosen, and a table."""
    told = [
        f"{task}: alpha {one['alpha']:g}, "
        + (f"the least that kept {KEPT:.0%} of" if one["enough"] else f"the best; none kept {KEPT:.0%} of")
        + f" full prefill's {one['full']:.3f} over {one['questions']} questions of another trace ("
        + ", ".join(f"{each['alpha']:g}: {each['em']:.3f}, {each['computed']:.2f} computed" for each in one["sweep"])
        + ").\n"
        for task, one in about["chosen"].items()
    ]
    return "\n".join([made_by(about), *told, table(_HEAD, [_cells(row) for row in rows])])


def _cells(row: Mapping[str, Any]) -> list[Any]:
    spans = [
        f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]" for one in (row["em"], row["loss"], row["gain"])
    ]
    shares = [f"{row[name]:.2f}" for name in ("computed", "charged", "charged_flops", "harvest_flops")]
    alpha = None if row["alpha"] is None else f"{row['alpha']:g}"
    return [row["task"], f"{row['first']}-{row['last']}", row["system"], alpha, *spans, *shares,
            f"{row['bytes'] / 2**20:.1f}"]  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
