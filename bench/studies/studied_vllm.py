"""VLLM with the connector, in this process and in fp32, for what is measured through it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import torch
from torch import Tensor


def start_vllm(model: str, folder: Path, *, memory_bytes: int = 1 << 30, **settings: Any) -> Any:
    """VLLM over a model and an index's folder, and how much KV it keeps in memory; settings are vLLM's own."""
    from vllm import LLM
    from vllm_ragcache.launch import connector_config
    from vllm_ragcache.wanted import WORKER

    from ragcache.model.loading import checkpoint_of

    return LLM(
        checkpoint_of(model), dtype="float32", enforce_eager=True, enable_prefix_caching=True, max_logprobs=-1,
        logprobs_mode="raw_logprobs", worker_cls=WORKER, **settings,
        kv_transfer_config=connector_config(folder, memory_bytes=memory_bytes),
    )  # fmt: skip


def generate(llm: Any, token_ids: Sequence[int], tokens: int, *, ragcache: Any = None, logprobs: bool = False) -> Any:
    """One greedy answer; `ragcache` is what the request asks of the connector, None for the index's own method."""
    from vllm import SamplingParams

    extra = {} if ragcache is None else {"kv_transfer_params": {"ragcache": ragcache}}
    params = SamplingParams(temperature=0, max_tokens=tokens, logprobs=-1 if logprobs else None, extra_args=extra)
    return llm.generate({"prompt_token_ids": list(token_ids)}, params, use_tqdm=False)[0]


def first_logprobs(answer: Any) -> Tensor:
    """Log-probabilities of an answer's first token, over the whole vocabulary."""
    seen = {token: entry.logprob for token, entry in answer.outputs[0].logprobs[0].items()}
    return torch.tensor([seen[token] for token in range(len(seen))])


def version() -> str:
    """Which vLLM this is."""
    import vllm

    return str(vllm.__version__)
