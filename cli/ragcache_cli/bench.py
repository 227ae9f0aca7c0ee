"""`ragcache bench`: how good and how fast each method answers."""

import typer

from ragcache_cli import (
    bench_corpus,
    bench_findings,
    bench_ingestion,
    bench_inspect,
    bench_latency,
    bench_quality,
    bench_sweep,
    bench_throughput,
    bench_trace,
    bench_tune,
)

app = typer.Typer(no_args_is_help=True, help="Measure the methods: quality on tasks, time to the first token.")
app.command("quality")(bench_quality.quality)
app.command("corpus")(bench_corpus.corpus)
app.command("latency")(bench_latency.latency)
app.command("trace")(bench_trace.trace)
app.command("throughput")(bench_throughput.throughput)
app.command("ingestion")(bench_ingestion.ingestion)
app.command("admit")(bench_findings.admit)
app.command("findings")(bench_findings.findings)
app.command("sweep")(bench_sweep.sweep)
app.command("inspect")(bench_inspect.inspect)
app.command("tune")(bench_tune.tune)
