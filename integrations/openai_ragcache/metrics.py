"""Counts for Prometheus: requests, chunk tokens by what became of them, and how long people waited."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ragcache.engine.verify import Verification
from ragcache.report import CacheReport

_NATS = (1e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1, 3)
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
        self._verified = Counter(
            "ragcache_verified_answers",
            "Answers from reused KV that were repeated by full prefill, by whether it says the same.",
            ["confirmed"],
            registry=self.registry,
        )
        for confirmed in ("yes", "no"):
            self._verified.labels(confirmed)
        self.unverified = Counter(
            "ragcache_unverified_answers", "Drawn, but too many waited to be verified.", registry=self.registry
        )
        self._kl = Histogram(
            "ragcache_first_token_kl",
            "KL(full prefill || reuse) of verified answers' first tokens, in nats.",
            buckets=_NATS,
            registry=self.registry,
        )
        self._worst_kl = Gauge("ragcache_worst_first_token_kl", "The largest of them.", registry=self.registry)
        self._worst = 0.0

    def watch_agreement(self, below: Callable[[], int]) -> None:
        """Show how many tenants' agreement is below the bound whenever somebody looks."""
        gauge = Gauge(
            "ragcache_agreement_below_bound", "Tenants whose agreement is below the bound.", registry=self.registry
        )
        gauge.set_function(below)

    def watch_learnt(self, held: Callable[[], int]) -> None:
        """Show how much KV of texts of no document is kept whenever somebody looks."""
        gauge = Gauge("ragcache_learnt_bytes", "KV of learnt texts, in memory.", registry=self.registry)
        gauge.set_function(held)

    def note_verification(self, found: Verification) -> None:
        """Count an answer that full prefill was asked about."""
        self._verified.labels("yes" if found.confirmed else "no").inc()
        self._kl.observe(found.first_token_kl)
        self._worst = max(self._worst, found.first_token_kl)
        self._worst_kl.set(self._worst)

    def watch_queue(self, waiting: Callable[[], int], idle_work: Callable[[], int]) -> None:
        """Show how much waits whenever somebody looks."""
        gauge = Gauge("ragcache_queue_waiting", "Requests that wait for the engine.", registry=self.registry)
        gauge.set_function(waiting)
        later = Gauge("ragcache_idle_work", "What waits for the engine to be idle, or runs.", registry=self.registry)
        later.set_function(idle_work)

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
