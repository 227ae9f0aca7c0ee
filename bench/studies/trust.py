"""May an answer be trusted that follows the document, where the prompt says otherwise? A second look, and its price.

    python bench/studies/trust.py --out docs/benchmarks/trust.json

The default reads each chunk as its document has it. In `sections-misled` the document is wrong and the prompt is right;
in `sections-bare` only the document says whose a fact is; in the others both agree. Each question is prefilled by the
default and looked at a second time in several ways, the cheapest first. The signal is how far the second look moves the
first token: the probability that it gives to a token other than the default's. Its threshold is chosen on one half of
the questions, for the most right answers, and judged on the other; above it, full prefill answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from ragcache_bench import report
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.contenders import Contender
from ragcache_bench.metrics import bootstrap, exact_match
from ragcache_bench.tasks import KNOWN, Example
from torch import Tensor

from ragcache import Sampling
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.method import Method
from ragcache.methods import find_method
from ragcache.model.loading import load_reader
from ragcache.model.reader import Reader
from ragcache.report import ignore_progress
from ragcache.retrieve import Embedder
from ragcache.select import Grouped, QuestionAttention

_AUTO = find_method("auto")
_BEST = replace(_AUTO, name="best chunk", select=Grouped(QuestionAttention("all", "mean"), window=None))
LOOKS: Mapping[str, tuple[Method, float | None]] = {
    "2 %": (_AUTO, 0.02),
    "5 %": (_AUTO, 0.05),
    "best chunk": (_BEST, 0.07),
    "15 %": (_AUTO, 0.15),
    "naive": (find_method("naive"), None),
}
"""Second looks: shares recomputed, the best chunk as a whole, or the KV of chunks encoded alone."""


@dataclass(frozen=True)
class Seen:
    """One question: who is right, and what each second look says of the default's first token."""

    task: str
    auto: float
    full: float
    moved: Mapping[str, float]


def main(
    tasks: Annotated[
        str, typer.Option(help="Names, between commas.")
    ] = "sections,sections-bare,sections-misled,pronouns,labels,units",
    n: Annotated[int, typer.Option(help="Questions of each task, half of them to choose on.")] = 200,
    model: Annotated[str, typer.Option(help="Hub id or folder, or bundled.")] = "bundled",
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("trust.json"),
) -> None:
    """Look twice at every question."""
    use_threads(threads)
    reader = load_reader(model)
    chosen = [one for name in split(tasks) for one in _look(reader, name, n // 2, seed=0)]
    judged = [one for name in split(tasks) for one in _look(reader, name, n // 2, seed=1)]
    rows = [row for look in LOOKS for row in _judge(look, chosen, judged)]
    about = report.meta(**report.about_reader(reader), tasks=tasks, n=n)
    write(out, {"meta": about, "rows": rows})
    for row in rows:
        typer.echo(" ".join(f"{name} {value}" for name, value in row.items()))


def _look(reader: Reader, task: str, n: int, seed: int) -> Iterator[Seen]:
    """All looks at each question of a task."""
    examples = KNOWN[task].examples(n, seed)
    turns = tuple((name, Contender(find_method(name))) for name in ("auto", "naive"))
    sampling = Sampling(max_new_tokens=24)
    job = Job(task, tuple(examples), tuple(Asked(one, turns) for one in examples), sampling)
    with filled(job, reader, Embedder(), ignore_progress) as (index, ids):
        engine = Engine(reader, index)
        for one in examples:
            yield _seen(engine, one, index.chunks([ids[text] for text in one.chunks]), sampling)


def _seen(engine: Engine, example: Example, chunks: Sequence[Chunk], sampling: Sampling) -> Seen:
    def right(method: str) -> float:
        said = engine.answer(example.question, chunks, method=method, sampling=sampling).text
        return exact_match(said, example.answers)

    def first(row: Method, share: float | None) -> Tensor:
        logits = engine.prefill(example.question, chunks, method=row, recompute=share).logits
        return logits.float().softmax(-1)

    token = int(first(_AUTO, 0.0).argmax())
    moved = {look: 1 - float(first(row, share)[token]) for look, (row, share) in LOOKS.items()}
    return Seen(example.task, right("auto"), right("full"), moved)


def _judge(look: str, chosen: Sequence[Seen], judged: Sequence[Seen]) -> Iterator[dict[str, Any]]:
    """What the signal tells, and what follows from acting on it, by task and over all."""
    limit = max((0.0, *(one.moved[look] for one in chosen)), key=lambda limit: _share(look, chosen, limit))
    for task in (*dict.fromkeys(one.task for one in judged), "all"):
        those = [one for one in judged if task in (one.task, "all")]
        switched = [one.moved[look] > limit for one in those]
        after = [one.full if other else one.auto for one, other in zip(those, switched, strict=True)]
        gain = bootstrap([got - one.auto for got, one in zip(after, those, strict=True)])
        yield {
            "look": look, "task": task, "n": len(those), "limit": limit, "auc": _auc(look, those),
            "auto": fmean(one.auto for one in those), "full": fmean(one.full for one in those),
            "switched": fmean(switched), "after": fmean(after), "gain": asdict(gain),
        }  # fmt: skip


def _share(look: str, those: Sequence[Seen], limit: float) -> float:
    """How many answers are right if full prefill answers above a limit."""
    return fmean(one.full if one.moved[look] > limit else one.auto for one in those)


def _auc(look: str, those: Sequence[Seen]) -> float | None:
    """How often a question that full prefill alone has right is moved more than one that the default has right.

    None where fewer than ten are on either side.
    """
    harmed = [one.moved[look] for one in those if one.full > one.auto]
    fine = [one.moved[look] for one in those if one.auto]
    if min(len(harmed), len(fine)) < 10:
        return None
    return fmean((a > b) + 0.5 * (a == b) for a in harmed for b in fine)


if __name__ == "__main__":
    typer.run(main)
