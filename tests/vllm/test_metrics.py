"""What vLLM's log and `/metrics` say of reuse."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from vllm_asking import Chosen, expected, generate, report

from ragcache.engine.engine import Engine

pytestmark = pytest.mark.vllm


def test_counters_add_up_what_requests_did(
    llm: Any, engine: Engine, chunks: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm_ragcache.scheduler_side import SchedulerSide

    seen, take = Counter[str](), SchedulerSide.take_stats

    def watch(self: Any) -> Any:
        if (stats := take(self)) is not None:
            seen.update(stats.to_dict())
        return stats

    monkeypatch.setattr(SchedulerSide, "take_stats", watch)
    ids, _ = expected(engine, chunks(90, 6), "auto")
    reports = [
        report(generate(llm, prompt, tokens=2, ragcache=asked)[0])
        for prompt, asked in ((ids, "auto"), (ids[:-4], {"method": "epic", "recompute": 0.3}), (ids, "nothing"))
    ]
    assert seen["ragcache:requests reused"] == 2
    assert seen["ragcache:requests refused"] == 1
    assert seen["ragcache:tokens all"] == sum(one["prompt_tokens"] for one in reports)
    assert seen["ragcache:tokens loaded"] == sum(one["loaded_tokens"] for one in reports) > 0
    assert seen["ragcache:tokens recomputed"] == sum(one["recomputed_tokens"] for one in reports) > 0
    assert seen["ragcache:chunks loaded"] == 12
    assert min(seen["ragcache:seconds look-up"], seen["ragcache:seconds load"]) > 0


def test_prometheus_has_them_by_label() -> None:
    from prometheus_client import REGISTRY, Gauge, Histogram
    from prometheus_client import Counter as PrometheusCounter
    from vllm_ragcache.connector import RagCacheConnector
    from vllm_ragcache.metrics import ReuseStats

    stats = ReuseStats()
    stats.count("ragcache:tokens", "loaded", 30)
    stats.count("ragcache:seconds", "load", 0.5)
    both = stats.aggregate(RagCacheConnector.build_kv_connector_stats(stats.to_dict()))
    assert both.reduce() == {"ragcache:tokens loaded": 60, "ragcache:seconds load": 1.0}
    kinds = {kind: kind for kind in (PrometheusCounter, Gauge, Histogram)}
    config = SimpleNamespace(kv_transfer_config=None)
    metrics = RagCacheConnector.build_prom_metrics(config, kinds, ["engine"], {0: ["0"]})
    metrics.observe(both.to_dict(), 0)
    metrics.observe(both.to_dict(), 0)
    assert REGISTRY.get_sample_value("ragcache:tokens_total", {"engine": "0", "kind": "loaded"}) == 120
    assert REGISTRY.get_sample_value("ragcache:seconds_total", {"engine": "0", "stage": "load"}) == 2.0
