"""Two workers, each with half of the heads, choose and recompute what our engine does with all of them."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from vllm_asking import QUESTION, Chosen, distance, expected, generate, prefill_parts, report

from ragcache import bundled
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.prompt import Segment

pytestmark = pytest.mark.vllm
ROWS = [
    ("naive", None), ("auto", 0.05), ("epic", 0.15), ("cacheblend", 0.15), ("cacheblend-v", 0.3), ("prophetkv", 0.3),
    ("qcfuse", 0.3), ("fusionrag", 0.15),
]  # fmt: skip


@pytest.fixture(scope="module")
def parallel(index: Index) -> Iterator[Any]:
    """vLLM over the same index, in two workers."""
    from vllm import LLM
    from vllm_ragcache.launch import connector_config
    from vllm_ragcache.wanted import WORKER

    llm = LLM(
        str(bundled.reader_path()), dtype="float32", max_model_len=1024, block_size=32, enforce_eager=True,
        max_logprobs=-1, logprobs_mode="raw_logprobs", tensor_parallel_size=2, distributed_executor_backend="mp",
        max_num_batched_tokens=1024, worker_cls=WORKER, kv_transfer_config=connector_config(index.path),
    )  # fmt: skip
    yield llm
    llm.llm_engine.engine_core.shutdown()


@pytest.mark.parametrize(("method", "share"), ROWS)
def test_two_workers_answer_as_our_engine(
    parallel: Any, engine: Engine, chunks: Chosen, method: str, share: float | None
) -> None:
    asked = {"method": method} | ({} if share is None else {"recompute": share})
    for seed in (80, 81):
        ids, wanted = expected(engine, chunks(seed, 6), method, share)
        [output] = generate(parallel, ids, ragcache=asked)
        assert distance(output, wanted) < 5e-4
        assert report(output)["chunks"] == 6


def test_two_workers_fill_what_is_missing(parallel: Any, engine: Engine, chunks: Chosen) -> None:
    chosen = chunks(82, 6)
    words = Segment(engine.index.template.plain("Nobody has ever ingested these words, nor will they.\n\n"))
    parts = [engine.index.prefix_segment, *chosen[:3], words, *chosen[3:]]
    ours = prefill_parts(engine, parts, QUESTION, "cacheblend", 0.15)
    asked = {"method": "cacheblend", "recompute": 0.15}
    [output] = generate(parallel, ours.prompt.token_ids, ragcache=asked)
    assert distance(output, torch.log_softmax(ours.logits, -1)) < 5e-4
    [exact] = generate(parallel, ours.prompt.token_ids, ragcache=False)
    assert distance(exact, torch.log_softmax(prefill_parts(engine, parts, QUESTION, "full", None).logits, -1)) < 1e-4
