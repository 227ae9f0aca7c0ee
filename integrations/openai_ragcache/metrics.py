"""Counts for Prometheus: requests, chunk tokens by what became of them, and how long people waited."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ragcache.report import CacheReport

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """What a server counts, all tenants together: no series tells one of them apart."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ragcache_requests", "Requests, by path and status.", ["path", "status"], registry=self.registry
        )
        self._chunks = Counter("ragcache_chunks", "Chunks in prompts, by state.", ["state"], registry=self.registry)
        self._tokens = Counter(
            "ragcache_prompt_tokens",
            "Tokens of prompts: of chunks by state (hit, exact, miss), and all others (question).",
            ["state"],
            registry=self.registry,
        )
        self._recomputed = Counter("ragcache_recomputed_tokens", "Reused, and refreshed.", registry=self.registry)
        self._generated = Counter("ragcache_generated_tokens", "Tokens of answers.", registry=self.registry)
        self._first = Histogram(
            "ragcache_first_token_seconds",
            "From when the engine takes a request up to its first token.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._waited = Histogram(
            "ragcache_queue_seconds", "A request's time in the queue.", buckets=_SECONDS, registry=self.registry
        )

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        """Show how much waits whenever somebody looks."""
        gauge = Gauge("ragcache_queue_waiting", "Requests that wait for the engine.", registry=self.registry)
        gauge.set_function(waiting)

    def note_answer(self, report: CacheReport, generated: int, waited_ms: float) -> None:
        """Count an answer."""
        for chunk in report.chunks:
            self._chunks.labels(chunk.cache).inc()
            self._tokens.labels(chunk.cache).inc(chunk.tokens)
        self._tokens.labels("question").inc(report.tokens.question)
        self._recomputed.inc(report.tokens.recomputed)
        self._generated.inc(generated)
        self._first.observe(report.ms.first_token / 1e3)
        self._waited.observe(waited_ms / 1e3)

    def page(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)
