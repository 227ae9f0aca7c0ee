"""What was reused, as counters beside vLLM's own: in its log, and at `/metrics` for Prometheus."""

from collections import Counter
from typing import Any

from ragcache.retrieve.needs import needs

with needs("vllm"):
    from prometheus_client import Counter as PrometheusCounter
    from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats

#: Counters by name: what they count, and by which label.
COUNTERS = {
    "ragcache:requests": ("Requests that were looked up, by what became of them.", "outcome"),
    "ragcache:chunks": ("Chunks that stood in prompts, loaded or missed.", "state"),
    "ragcache:tokens": ("Tokens of prompts that were looked up: all, loaded, recomputed, or fresh in front.", "kind"),
    "ragcache:seconds": ("Seconds that look-ups and loads took.", "stage"),
}


class ReuseStats(KVConnectorStats):
    """Counts since the last time somebody asked, by counter and label, as "ragcache:tokens loaded"."""

    def count(self, counter: str, label: str, value: float) -> None:
        """Add to a counter."""
        name = f"{counter} {label}"
        self.data[name] = self.data.get(name, 0) + value

    def reset(self) -> None:
        """Begin anew."""
        self.data = dict[str, Any]()

    def aggregate(self, other: KVConnectorStats) -> "ReuseStats":
        """Both together."""
        return ReuseStats(data=dict(Counter(self.data) + Counter(other.data)))

    def reduce(self) -> dict[str, int | float]:
        """What the log says."""
        return {name: round(value, 3) for name, value in self.data.items()}

    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not self.data


class ReuseMetrics(KVConnectorPromMetrics):
    """The same for Prometheus."""

    def __init__(
        self,
        vllm_config: Any,
        metric_types: Any,
        labelnames: list[str],
        per_engine_labelvalues: dict[int, list[object]],
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        made = metric_types[PrometheusCounter]
        self._counters = {
            name: made(name=name, documentation=about, labelnames=[*labelnames, label])
            for name, (about, label) in COUNTERS.items()
        }

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Add what was counted."""
        engine = self.per_engine_labelvalues[engine_idx]
        for name, value in transfer_stats_data.items():
            counter, label = name.split(" ", 1)
            self._counters[counter].labels(*engine, label).inc(value)
