"""The same prompt asked of vLLM and of our own engine."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ragcache.engine.clock import Clock
from ragcache.engine.engine import Engine
from ragcache.engine.parsed_prompt import ChunkPlace, ParsedPrompt
from ragcache.engine.prefill import Prefilled, choose_strategy
from ragcache.engine.request import Request
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.prompt import Segment

QUESTION = "Who leads the Tide project?"
Chosen = Callable[..., list[Any]]


def generate(llm: Any, *prompts: Sequence[int], tokens: int = 1, **asked: Any) -> list[Any]:
    from vllm import SamplingParams

    extra = {"kv_transfer_params": asked} if asked else None
    params = SamplingParams(temperature=0, max_tokens=tokens, logprobs=-1 if tokens == 1 else None, extra_args=extra)
    return llm.generate([{"prompt_token_ids": list(ids)} for ids in prompts], params, use_tqdm=False)


def logprobs(output: Any) -> torch.Tensor:
    seen = output.outputs[0].logprobs[0]
    return torch.tensor([seen[token].logprob for token in range(len(seen))])


def expected(
    engine: Engine, chunks: Sequence[Any], method: str, share: float | None = None
) -> tuple[list[int], torch.Tensor]:
    prefilled = engine.prefill(QUESTION, chunks, method=method, recompute=share)
    return list(prefilled.prompt.token_ids), torch.log_softmax(prefilled.logits.float(), -1)


def report(output: Any) -> dict[str, Any]:
    return output.kv_transfer_params["ragcache"]


def distance(output: Any, wanted: torch.Tensor) -> float:
    found = logprobs(output)
    return float((found - wanted[: len(found)]).abs().max())


def prefill_parts(engine: Engine, parts: list[Any], question: str, method: str, share: float | None) -> Prefilled:
    """Our engine on a prompt of its system prompt or not, chunks, and other text, as tokens."""
    asked, suffix = engine.index.template.question(question)
    places = [part if isinstance(part, Segment) else ChunkPlace(part, len(part.segment), Segment(())) for part in parts]
    row, chunks = find_method(method), tuple(part for part in parts if not isinstance(part, Segment))
    frame = ParsedPrompt([*places, asked, suffix], asked, question)
    request = Request(question, chunks, frame, row, row.budget(share), Sampling(), Clock(engine.reader.device))
    return choose_strategy(row).prefill(request, engine.index)
