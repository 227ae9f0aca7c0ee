"""`ragcache bench tune`: the settings of a method that suit one's own questions best."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import note, progress, say

from ragcache_bench.commands import options as options
from ragcache_bench.commands.options import known, show, split, use_threads, write

if TYPE_CHECKING:
    from ragcache_bench.tuning import Tuning

_ROW = (
    "method", "settings", "chosen", "recompute", "charged", "tuning_score", "score", "low", "high", "agreement",
    "delta", "delta_low", "delta_high",
)  # fmt: skip


def tune(
    questions: Annotated[Path, typer.Option(metavar="FILE", help="Your own questions, JSONL, as `bench quality` has.")],
    index: Annotated[Path, typer.Option("--index", metavar="DIR", help="Folder of the index that they are asked of.")],
    names: options.Methods = "auto",
    budget: Annotated[float, typer.Option(metavar="R", help="Share to recompute, the same for every row.")] = 0.15,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=V,V", help="Values to try, select.layers=last,all; repeatable. Else a default."),
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=2, metavar="N", help="Most candidates of a row; every row gets as many.")
    ] = 8,
    by: Annotated[str, typer.Option(metavar="score|agreement", help="What the choice is made by.")] = "score",
    seed: Annotated[int, typer.Option(metavar="S", help="Of the halves, and of candidates left out.")] = 0,
    model: options.Reader = None,
    top_k: options.TopK = None,
    max_new_tokens: options.Tokens = 40,
    threads: options.Threads = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="JSON to write; the answers' .jsonl goes beside it.")
    ] = Path("tune.json"),
    as_json: AsJson = False,
) -> None:
    """Try a few settings of each method on half of your questions, and judge the best one on the other half.

    Every row gets the same number of candidates at the same share, its own settings among them. Settings of the
    encoder are part of it only where its KV can be made for a question: the throw-away tokens of link0 and psr, which
    `--grid encode.tokens=1,5,10` names. Other KV is made by `ingest`. The held-out half decides nothing; its interval
    says whether what was chosen is surely better than the row as it is. A run that was interrupted resumes.
    """
    from ragcache.methods import find_method
    from ragcache.rag import RagCache
    from ragcache_bench import grid as grids
    from ragcache_bench import report, tuning
    from ragcache_bench import user_questions as own
    from ragcache_bench.records import Journal

    known(by, {"score": by, "agreement": by})
    rows = [find_method(name) for name in dict.fromkeys(split(names))]
    field = grids.candidates(rows, grids.parse(grid) if grid else None, candidates, seed)
    parts = tuning.halves(own.read(questions), seed)
    use_threads(threads)
    with RagCache.open(index, model=model, create=False) as rag, progress() as shown:
        top_k = top_k or rag.top_k
        found = tuning.tune(
            rag, parts, field, Journal(out.with_suffix(".jsonl")), budget=budget, by=by,  # type: ignore[arg-type]
            top_k=top_k, max_new_tokens=max_new_tokens, progress=shown,
        )  # fmt: skip
        about = report.meta(
            **report.about_reader(rag.reader), budget=budget, by=by, seed=seed, top_k=top_k,
            max_new_tokens=max_new_tokens, candidates={name: len(all_of) for name, all_of in field.items()},
            questions={"tuning": len(parts[0]), "held_out": len(parts[1])},
        )  # fmt: skip
    content = {"meta": about, **_content(found)}
    write(out, content)
    shown_rows = {"rows": [{**row, "settings": grids.spelled(row["settings"])} for row in content["rows"]]}
    show(content if as_json else shown_rows, _ROW, as_json=as_json)
    for row in found.rows if not as_json else ():
        if row.chosen:
            say(f"{row.words}.")
    note(f"wrote {out} and its .jsonl")


def _content(found: "Tuning") -> dict[str, Any]:
    tried = [
        {"method": one.row, "settings": dict(one.settings), "score": row.score, "agreement": row.agreement,
         "kl": row.kl, "charged": row.charged}
        for one, row in found.tried
    ]  # fmt: skip
    return {
        "rows": [asdict(row) for row in found.rows],
        "controls": [asdict(row) for row in found.controls],
        "candidates": tried,
    }
