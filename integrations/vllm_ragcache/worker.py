"""The stock worker, which lets the connector run the model that it has loaded.

It is what `--worker-cls vllm_ragcache.worker.RagCacheWorker` names, and what recompute needs.
"""

from typing import Any

from vllm.distributed.kv_transfer import get_kv_transfer_group, has_kv_transfer_group
from vllm.platforms import current_platform

from vllm_ragcache.connector import RagCacheConnector

if current_platform.is_cpu():
    from vllm.v1.worker.cpu_worker import CPUWorker as StockWorker
else:
    from vllm.v1.worker.gpu_worker import Worker as StockWorker


class RagCacheWorker(StockWorker):
    """vLLM's own worker for this platform; nothing it does is changed."""

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """Set up KV as ever, and hand the connector the model."""
        super().initialize_from_config(kv_cache_config)
        connector = get_kv_transfer_group() if has_kv_transfer_group() else None
        if isinstance(connector, RagCacheConnector):
            connector.use_model(self.model_runner.get_model())
