"""Does tuning the auxiliary pay (CacheClip's first version)? Its choice and the answers by it, before and after.

    python bench/studies/auxiliary.py --out docs/benchmarks/auxiliary-reader.json

Two questions of every task: which tokens does the auxiliary choose, held against the primary's own look under full
prefill (the mean over all layers) and against the tokens of the chunks that hold the answer; and what is answered by
that choice. Everything is chosen among the tokens that `cacheclip` may recompute: all chunks but the first, whose KV is
exact behind the system prefix. Intervals are 95 %, by bootstrap over the questions, paired where two rows are compared.
An interrupted run resumes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.agreement import best
from ragcache_bench.asking import Asked, Job, filled
from ragcache_bench.commands.options import bench, known, split, write
from ragcache_bench.contenders import Contender
from ragcache_bench.markdown import made_by, table
from ragcache_bench.metrics import Interval, bootstrap, bootstrap_ratio
from ragcache_bench.records import Record
from ragcache_bench.runs import Bench
from ragcache_bench.tasks import KNOWN, Example

from ragcache.encode import Prefixed
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.prefill_context import PrefillContext
from ragcache.select import Auxiliary, Grouped, QuestionAttention
from ragcache.select.companion import reader_of

BUDGETS = (0.05, 0.15)
GROUPS = ("needs other chunks", "self-contained twins")
TASKS = "sections,pronouns,labels,units,definitions,antecedents,parts,sections-twin,pronouns-twin"
PRIMARY, PROPHET, BEFORE, EVERY_LAYER, AFTER = LOOKS = (
    "primary", "prophetkv", "sibling", "sibling, all layers", "sibling-tuned"
)  # fmt: skip
"""Who looks: the primary under full prefill, the primary over reused KV, and the auxiliary by its last layer, by all of
its layers, which takes no tuning, and tuned."""
_CLIP = METHODS["cacheclip"]

Rows = list[dict[str, Any]]


def field() -> list[Contender]:
    """Who answers: controls, the primary's own look, and `cacheclip` by either auxiliary, with groups and without."""
    tuned, about = Auxiliary(AFTER), fingerprint(AFTER)  # an answer is known by all that is said of its row
    rows = [
        METHODS["random"], METHODS[PROPHET], _CLIP,
        replace(_CLIP, name="cacheclip, tuned", select=Grouped(tuned, window=8, stride=4), about=about),
        replace(_CLIP, name="cacheclip, all layers", select=Grouped(Auxiliary(layers="all"), window=8, stride=4)),
        Method("cacheclip, single tokens", Prefixed(), Auxiliary(), 0.2),
        Method("cacheclip, all layers, single tokens", Prefixed(), Auxiliary(layers="all"), 0.2),
        Method("cacheclip, tuned, single tokens", Prefixed(), tuned, 0.2, about=about),
    ]  # fmt: skip
    return [Contender(METHODS["full"]), Contender(METHODS["naive"]), *(Contender(r, b) for r in rows for b in BUDGETS)]


def main(
    out: Annotated[Path, typer.Option(help="JSON to write; tables go beside it, and what is kept of the run.")],
    n: Annotated[int, typer.Option(min=1, help="Questions of each task that needs other chunks.")] = 30,
    twins: Annotated[int, typer.Option(min=1, help="Questions of each self-contained twin.")] = 50,
    tasks: Annotated[str, typer.Option(metavar="A,B", help="Tasks by name; twins are those with -twin.")] = TASKS,
    seed: int = 41,
    threads: int = 1,
) -> None:
    """Ask, compare, and write both tables."""
    chosen = {name: known(name, KNOWN).examples(twins if name.endswith("-twin") else n, seed) for name in split(tasks)}
    with bench(out.with_suffix(".jsonl"), None, "auto", 40, threads, together=True) as asked:
        seen = {name: list(choices(asked, name, examples)) for name, examples in chosen.items()}
        records = asked.answers(chosen, field())
        about = report.meta(**report.about_reader(asked.reader), n=n, twins=twins, seed=seed, budgets=BUDGETS)
    content = {"meta": about, "choices": compare_choices(seen), "answers": compare_answers(records)}
    write(out, content)
    text = markdown(content)
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    typer.echo(text)


# -- what is chosen -------------------------------------------------------------------------------------------------
def choices(bench: Bench, task: str, examples: Sequence[Example]) -> Iterator[dict[str, float]]:
    """By question: each look's overlap with the primary's choice, and its share of the evidence, at each budget."""
    turns = (("", Contender(_CLIP)), ("", Contender(METHODS[PROPHET])))
    job = Job(task, tuple(examples), tuple(Asked(one, turns) for one in examples), bench.sampling)
    with filled(job, bench.reader, bench.embedder, bench.progress) as (index, ids):
        engine = Engine(bench.reader, index)
        for done, example in enumerate(examples, 1):
            seen = _Seen(engine, example, index.chunks([ids[text] for text in example.chunks]))
            parts = (bench.reader.fingerprint, str(example.gold), example.question, *example.chunks)
            gold = bench.journal.recall(("evidence", *parts), seen.evidence)
            ranked = {
                look: bench.journal.recall((look, fingerprint(look), *parts), partial(seen.ranked, look))
                for look in LOOKS
            }
            yield dict(shares(ranked, gold))
            bench.progress(f"{task}: choices", done, len(examples))


def fingerprint(look: str) -> str:
    """Of the auxiliary that looks; an auxiliary tuned anew is another one."""
    return reader_of(look).fingerprint if look in (BEFORE, AFTER) else ""


@dataclass(frozen=True)
class _Seen:
    """One question over its chunks, as each look sees it."""

    engine: Engine
    example: Example
    chunks: list[Chunk]

    def context(self, row: Method) -> PrefillContext:
        """The prompt with the KV that a row loads, nothing recomputed."""
        p = self.engine.prefill(self.example.question, self.chunks, method=row, recompute=0.0).context
        assert p is not None  # only full prefill has none
        return p

    @cached_property
    def _clip(self) -> PrefillContext:
        return self.context(_CLIP)

    def ranked(self, look: str) -> list[int]:
        """The best of the selectable tokens, best first, as many as the largest budget takes."""
        p = self._clip
        if look == PROPHET:
            scores = QuestionAttention("all", "mean").scores(self.context(METHODS[PROPHET]))
        else:
            every = look in (PRIMARY, EVERY_LAYER)
            model = p.reader if look == PRIMARY else BEFORE if look == EVERY_LAYER else look
            scores = Auxiliary(model, layers="all" if every else "last").scores(p)
        taken: list[int] = best(scores[p.selectable], max(BUDGETS)).tolist()
        return taken

    def evidence(self) -> dict[str, Any]:
        """How many tokens are selectable, and which of them stand in chunks that hold the answer."""
        p, segments = self._clip, self._clip.prompt.chunks()
        gold = torch.zeros(len(p.prompt), dtype=torch.bool)
        for place in self.example.gold:
            gold[p.span(segments[place])] = True
        return {"tokens": int(p.selectable.sum()), "gold": gold[p.selectable].nonzero().squeeze(1).tolist()}


def shares(ranked: Mapping[str, Sequence[int]], evidence: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Of the primary's choice, and of the evidence, what each look takes at each budget."""
    gold = set(evidence["gold"])
    for budget in BUDGETS:
        count = max(1, round(budget * evidence["tokens"]))
        wanted = set(ranked[PRIMARY][:count])
        for look, tokens in ranked.items():
            taken = set(tokens[:count])
            yield f"{look} {budget:g} overlap", len(taken & wanted) / count
            if gold:  # else the answer stands in the first chunk, which is exact
                yield f"{look} {budget:g} evidence", len(taken & gold) / len(gold)


def compare_choices(seen: Mapping[str, Sequence[Mapping[str, float]]]) -> Rows:
    """A row for each group or task, look and budget; random tokens take their budget of everything."""
    return [
        {
            "group": group, "look": look, "budget": budget, "n": len(of),
            "overlap": asdict(bootstrap([one[f"{look} {budget:g} overlap"] for one in of])),
            "evidence": asdict(bootstrap([one[key] for one in of if (key := f"{look} {budget:g} evidence") in one])),
        }
        for group, names in _groups(list(seen))
        for of in [[one for name in names for one in seen[name]]]
        for look in LOOKS
        for budget in BUDGETS
    ]  # fmt: skip


# -- what is answered -----------------------------------------------------------------------------------------------
def compare_answers(records: Sequence[Record]) -> Rows:
    """A row for each group or task, and contender: exact match, what is kept of full prefill's, and the gain by tuning.

    `gain` is over the same row untuned, `over_layers` over that one read in all of its layers.
    """
    tasks = list(dict.fromkeys(record.task for record in records))
    return [_answered(group, names, who, records) for group, names in _groups(tasks) for who in field()]


def _answered(group: str, names: Sequence[str], who: Contender, records: Sequence[Record]) -> dict[str, Any]:
    ours, full = (_of(records, names, one) for one in (who, Contender(METHODS["full"])))
    gains = dict[str, Interval | None](gain=None, over_layers=None)
    if ", tuned" in who.name:
        for name, words in (("gain", ""), ("over_layers", ", all layers")):
            other = replace(who, method=replace(who.method, name=who.name.replace(", tuned", words)))
            both = zip(ours, _of(records, names, other), strict=True)
            gains[name] = bootstrap([one.em - beside.em for one, beside in both])
    kept = None
    if any(one.em for one in full):
        kept = bootstrap_ratio([a.em * b.em for a, b in zip(ours, full, strict=True)], [one.em for one in full])
    charged = [one.charged for one in ours if one.charged is not None]
    return {
        "group": group, "method": who.name, "budget": who.recompute, "n": len(ours),
        "charged": fmean(charged) if charged else None, "flops": fmean(one.charged_flops for one in ours),
        "score": asdict(bootstrap([one.em for one in ours])), "kept": kept and asdict(kept),
        "kl": fmean(one.kl or 0.0 for one in ours), **{name: one and asdict(one) for name, one in gains.items()},
    }  # fmt: skip


def _of(records: Sequence[Record], names: Sequence[str], who: Contender) -> list[Record]:
    """A contender's answers, in the order of the questions."""
    return [r for r in records if r.task in names and (r.method, r.recompute) == (who.name, who.recompute)]


def _groups(tasks: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Both groups, then each task."""
    twins = [name for name in tasks if name.endswith("-twin")]
    pairs = zip(GROUPS, ([name for name in tasks if name not in twins], twins), strict=True)
    return [(group, names) for group, names in [*pairs, *((name, [name]) for name in tasks)] if names]


# -- for people -----------------------------------------------------------------------------------------------------
def markdown(content: Mapping[str, Any]) -> str:
    """Both tables: the groups, then exact match by task."""
    groups = [group for group in GROUPS if any(row["group"] == group for row in content["answers"])]
    chosen = [
        [row["group"], row["look"], f"{row['budget']:.0%}", _shown(row["overlap"]), _shown(row["evidence"])]
        for row in content["choices"]
        if row["group"] in groups
    ]
    answered = [[row["group"], *_cells(row)] for row in content["answers"] if row["group"] in groups]
    tasks = [group for group in dict.fromkeys(row["group"] for row in content["answers"]) if group not in groups]
    score = {(row["group"], row["method"], row["budget"]): row["score"]["mean"] for row in content["answers"]}
    by_task = [[who, _share(at), *(score[task, who, at] for task in tasks)] for who, at in dict.fromkeys(
        (row["method"], row["budget"]) for row in content["answers"])]  # fmt: skip
    n = {row["group"]: row["n"] for row in content["answers"]}
    heads = [f"{group}: {n[group]} questions" for group in groups]
    return "\n".join([
        "# The auxiliary before and after tuning\n",
        made_by(content["meta"]), "; ".join(heads) + ".\n",
        "What is chosen: of the primary's choice under full prefill, and of the tokens of the chunks with the answer, "
        "the share that a look takes. Random tokens take the budget of both.\n",
        table(["tasks", "look", "budget", "of the primary's choice (95 %)", "of the evidence (95 %)"], chosen),
        "What is answered: exact match, the share kept of what full prefill has right, the KL of the first token, and "
        "what tuning adds to exact match, question by question: over the same row, and over that row with all layers "
        "read. `FLOPs` are those before the first token over full prefill's, the auxiliary's among them.\n",
        table(["tasks", "method", "budget", "charged", "FLOPs", "exact match (95 %)", "kept of full (95 %)", "KL",
               "by tuning (95 %)", "over all layers, untuned (95 %)"], answered),
        "Exact match by task:\n", table(["method", "budget", *tasks], by_task),
    ])  # fmt: skip


def _cells(row: Mapping[str, Any]) -> list[object]:
    spans = [None if row[name] is None else _shown(row[name]) for name in ("score", "kept", "gain", "over_layers")]
    return [row["method"], _share(row["budget"]), row["charged"], row["flops"], *spans[:2], row["kl"], *spans[2:]]


def _share(budget: float | None) -> str | None:
    return None if budget is None else f"{budget:.0%}"


def _shown(found: Mapping[str, float]) -> str:
    one = Interval(**found)
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"


if __name__ == "__main__":
    typer.run(main)
