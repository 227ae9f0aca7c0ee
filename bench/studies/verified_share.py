"""Does `ragcache serve --verify` find the share of answers that full prefill confirms? And does misleading text show?

    python bench/studies/verified_share.py --out docs/benchmarks/verified-share.json

Questions of a task are asked through a server that verifies every answer; what its clients read of the share
(`/v1/ragcache/agreement`) is set beside a table made without a server: the benchmark's own comparison of the same row
with full prefill, on other questions of the task. In `sections-misled` each page has its parts in another order than
the prompt, so that the default, which reads a chunk as its page has it, is led astray. The last server falls back to
full prefill, and is asked the misleading questions behind the honest ones. All is in float32.
"""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from learnt_texts import messages_of
from openai_ragcache import Tenants
from ragcache_bench import report
from ragcache_bench.asking import Asked, Job, work
from ragcache_bench.commands.options import split, use_threads, write
from ragcache_bench.contenders import Contender
from ragcache_bench.metrics import agrees, bootstrap
from ragcache_bench.tasks import KNOWN, Example
from studied_server import ingest_examples, serve, wait_until_idle

from ragcache import RagCache, Reader, Sampling
from ragcache.engine.verify import wilson_interval
from ragcache.methods import find_method
from ragcache.model.loading import load_reader
from ragcache.report import ignore_progress
from ragcache.retrieve import Embedder

_NAME, _TOKENS = "asked", 24
_HONEST, _MISLED = "sections", "sections-misled"


def offline(reader: Reader, method: str, examples: Sequence[Example]) -> list[float]:
    """For each question whether a row's answer is full prefill's, by the benchmark's own comparison."""
    rows = {name: Contender(find_method(name)) for name in ("full", method)}
    asked = tuple(Asked(one, tuple(rows.items())) for one in examples)
    job = Job(examples[0].task, tuple(examples), asked, Sampling(max_new_tokens=_TOKENS))
    found = []
    for records in work(job, reader, Embedder(), ignore_progress):
        said = {one.key: one.answer for one in records}
        found.append(float(agrees(said[method], said["full"])))
    return found


def served(reader: Reader, method: str, tasks: Sequence[Sequence[Example]], **settings: Any) -> list[dict[str, Any]]:
    """What a server that verifies all says of its agreement behind each of some lists of questions."""
    with tempfile.TemporaryDirectory() as folder:
        rag = RagCache.open(Path(folder) / "index", model=reader, method=method)
        with closing(rag):
            ingest_examples(rag, [one for examples in tasks for one in examples])
            with (
                serve(Tenants.of_one(rag), model=_NAME, verify=1.0, **settings) as url,
                httpx.Client(base_url=url, timeout=600) as client,
            ):
                return [_ask_all(client, examples) for examples in tasks]


def _ask_all(client: httpx.Client, examples: Sequence[Example]) -> dict[str, Any]:
    """Ask one question after the other, each verified before the next."""
    before = client.get("/ragcache/agreement").json()
    noted = full = 0
    for example in examples:
        body = {"model": _NAME, "messages": messages_of(example), "max_tokens": _TOKENS}
        told = client.post("/chat/completions", json=body).raise_for_status().json()["ragcache"]
        noted += any("full prefill confirmed" in note for note in told["notes"])
        full += told["method"] == "full"
        wait_until_idle(client)
    after = client.get("/ragcache/agreement").json()
    verified, confirmed = (after[name] - before[name] for name in ("verified", "confirmed"))
    low, high = wilson_interval(confirmed / max(verified, 1), verified)
    shown = {name: after["recent"][name] for name in ("verified", "share", "low", "high")}
    return {
        "questions": len(examples), "verified": verified, "share": confirmed / max(verified, 1), "low": low,
        "high": high, "shown": shown, "below": after["below"], "noted": noted, "answered_by_full": full,
    }  # fmt: skip


def main(
    out: Annotated[Path, typer.Option(help="File to write.")],
    methods: Annotated[str, typer.Option(help="Rows, between commas.")] = "auto,naive",
    n: Annotated[int, typer.Option(help="Questions of a task, through the server and without.")] = 100,
    model: Annotated[str, typer.Option(help="Who answers.")] = "bundled",
    seed: Annotated[int, typer.Option(help="Of the questions.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Of the processor.")] = None,
) -> None:
    """Ask, and write both shares with their 95 % intervals."""
    use_threads(threads)
    reader, rows = load_reader(model, dtype="float32"), []
    for method in split(methods):
        for task in (_HONEST, _MISLED):
            asked = KNOWN[task].examples(n, seed)
            table = bootstrap(offline(reader, method, KNOWN[task].examples(n, seed + 1)))
            [server] = served(reader, method, [asked])
            rows.append({"method": method, "task": task, "served": server, "offline": asdict(table)})
            typer.echo(f"{method} {task}: served {server['share']:.3f} of {server['verified']}, offline {table}")
    # other seeds: the two tasks have the same texts, which would all stand on the honest pages
    behind = [KNOWN[task].examples(n, seed + shift) for task, shift in ((_HONEST, 0), (_MISLED, 2))]
    falling = served(reader, "auto", behind, fall_back=True)
    meta = report.meta(**report.about_reader(reader), n=n, seed=seed)
    write(out, {"meta": meta, "rows": rows, "falling_back": dict(zip((_HONEST, _MISLED), falling, strict=True))})
    typer.echo(f"with fall-back, honest questions and then misleading ones: {falling}")


if __name__ == "__main__":
    typer.run(main)
