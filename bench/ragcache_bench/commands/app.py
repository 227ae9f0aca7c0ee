"""`ragcache bench`: how good and how fast each method answers."""

import typer

from ragcache_bench.commands import (
    corpus,
    findings,
    ingestion,
    inspect,
    latency,
    quality,
    sweep,
    throughput,
    trace,
    tune,
)

app = typer.Typer(no_args_is_help=True, help="Measure the methods: quality on tasks, time to the first token.")
app.command("quality")(quality.quality)
app.command("corpus")(corpus.corpus)
app.command("latency")(latency.latency)
app.command("trace")(trace.trace)
app.command("throughput")(throughput.throughput)
app.command("ingestion")(ingestion.ingestion)
app.command("admit")(findings.admit)
app.command("findings")(findings.findings)
app.command("sweep")(sweep.sweep)
app.command("inspect")(inspect.inspect)
app.command("tune")(tune.tune)
