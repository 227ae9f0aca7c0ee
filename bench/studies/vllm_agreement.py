"""Does vLLM with the connector answer as our own engine does? Runs in the environment that `make vllm-check` makes.

    .venv-vllm/bin/python bench/studies/vllm_agreement.py --out docs/benchmarks/vllm-agreement-reader.json

Prompts of the demo corpus in fp32: chunks in random order, the same chunk twice, unknown text between chunks, and a
chunk that was changed in the middle. First-token log-probabilities over the whole vocabulary and the greedy texts of
both are compared. Our engine gets the very same tokens, and as chunks those in front of the first token that has to be
computed.
"""

import argparse
import gc
import json
import os
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import torch
from torch import Tensor

from ragcache import bundled
from ragcache.engine.clock import Clock
from ragcache.engine.engine import Engine
from ragcache.engine.parsed_prompt import ChunkPlace, ParsedPrompt
from ragcache.engine.prefill import choose_strategy
from ragcache.engine.request import Request
from ragcache.engine.stream import Stream
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import find_method
from ragcache.model.decode import Sampling
from ragcache.model.loading import load_reader
from ragcache.prompt import Segment

METHODS, TOKENS = ("naive", "auto"), 12
KINDS = {"shuffled": 30, "duplicate": 8, "unknown text between chunks": 8, "a chunk changed in the middle": 8}


@dataclass(eq=False)
class Case:
    """A prompt, the chunks that can be loaded, and what our engine says to it, by method."""

    kind: str
    token_ids: tuple[int, ...]
    loadable: Sequence[Chunk]
    logprobs: dict[str, Tensor] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def build_index(folder: Path, model: str) -> Index:
    """The demo corpus, a paragraph a chunk, with the KV of both methods."""
    index = Index(folder, load_reader(model, dtype="float32"))
    for file in sorted(path for path in bundled.corpus_path().rglob("*") if path.is_file()):
        text, pieces, end = file.read_text(), list[tuple[str, int, int]](), 0
        for paragraph in filter(str.strip, text.split("\n\n")):
            start = text.index(paragraph, end)
            end = start + len(paragraph)
            pieces.append((paragraph, start, end))
        index.put(str(file.relative_to(bundled.corpus_path())), "", pieces, {})
    for method in METHODS:
        encoder = find_method(method).encode
        for _ in index.encode(encoder) if encoder else ():
            pass
    return index


def cases(index: Index) -> Iterator[Case]:
    """Prompts of each kind; chunks of one document may stand in any of them."""
    rng, template = random.Random(0), index.template
    ids, questions = [id for id, _ in index.catalog.places()], bundled.questions()
    for kind, count in KINDS.items():
        for question in rng.sample(questions, count):
            chunks = index.chunks(rng.sample(ids, rng.randint(4, 9)))
            middle = len(chunks) // 2
            segments = [list(chunk.segment.token_ids) for chunk in chunks]
            loadable: Sequence[Chunk] = chunks
            if kind == "duplicate":
                loadable = [*chunks, chunks[0]]
                segments.append(segments[0])
            elif kind == "unknown text between chunks":
                segments.insert(middle, list(template.plain("Nobody has ever ingested these words.\n\n")))
                loadable = chunks[:middle]
            elif kind == "a chunk changed in the middle":
                at = len(segments[middle]) // 2
                segments[middle][at] += 1
                loadable = chunks[:middle]
            asked = [token for segment in template.question(question.question) for token in segment.token_ids]
            prompt = [*index.prefix_segment.token_ids, *(token for one in segments for token in one), *asked]
            yield Case(kind, tuple(prompt), loadable)


def answer_ourselves(engine: Engine, case: Case, method: str) -> None:
    """First-token log-probabilities and greedy text of our engine."""
    prefix = engine.index.prefix_segment
    start = len(prefix) + sum(len(chunk.segment) for chunk in case.loadable)
    places = [ChunkPlace(chunk, len(chunk.segment), Segment(())) for chunk in case.loadable]
    rest = Segment(case.token_ids[start:])
    frame = ParsedPrompt([prefix, *places, rest], rest, "?")
    request = Request(
        "?", tuple(case.loadable), frame, find_method(method), 0.0, Sampling(max_new_tokens=TOKENS),
        Clock(engine.reader.device),
    )  # fmt: skip
    prefilled = choose_strategy(request.method).prefill(request, engine.index)
    case.logprobs[method] = torch.log_softmax(prefilled.logits.float(), -1)
    case.texts[method] = Stream(engine.reader, request, prefilled).answer.text.strip()


def start_vllm(folder: Path, model: str, block: int) -> Any:
    """VLLM with the connector."""
    from vllm import LLM
    from vllm_ragcache.launch import connector_config

    from ragcache.model.loading import checkpoint_of

    return LLM(
        str(checkpoint_of(model)), dtype="float32", max_model_len=2048, block_size=block, enforce_eager=True,
        max_logprobs=-1, logprobs_mode="raw_logprobs", enable_prefix_caching=True,
        kv_transfer_config=connector_config(folder),
    )  # fmt: skip


def compare(llm: Any, case: Case, method: str) -> dict[str, Any]:
    """How far vLLM is from our engine on one prompt."""
    from vllm import SamplingParams

    asked = {"kv_transfer_params": {"ragcache": {"method": method}}}
    prompt = {"prompt_token_ids": list(case.token_ids)}
    first = SamplingParams(temperature=0, max_tokens=1, logprobs=-1, extra_args=asked)
    [one] = llm.generate(prompt, first, use_tqdm=False)
    seen = {token: entry.logprob for token, entry in one.outputs[0].logprobs[0].items()}
    theirs = torch.tensor([seen[token] for token in range(len(seen))])
    ours = case.logprobs[method][: len(seen)]
    greedy = SamplingParams(temperature=0, max_tokens=TOKENS, extra_args=asked)
    [text] = llm.generate(prompt, greedy, use_tqdm=False)
    report = one.kv_transfer_params["ragcache"]
    return {
        "difference": float((theirs - ours).abs().max()),
        "same_text": text.outputs[0].text.strip() == case.texts[method],
        "loaded": report["loaded_tokens"],
        "prompt": len(case.token_ids),
        "covered": report["chunks"] == len(case.loadable),
    }


def main() -> None:
    """Compare, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--blocks", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(Path(folder) / "index", options.model)
        engine, prompts = Engine(index.reader, index), list(cases(index))
        for case in prompts:
            for method in METHODS:
                answer_ourselves(engine, case, method)
        for block in options.blocks:
            llm = start_vllm(index.path, options.model, block)
            found = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
            for case in prompts:
                for method in METHODS:
                    found[method, case.kind].append(compare(llm, case, method))
            rows += [summary(block, method, kind, results) for (method, kind), results in found.items()]
            del llm
            gc.collect()
    for row in rows:
        print(row)
    about = {"command": f"python bench/studies/vllm_agreement.py --model {options.model}", "dtype": "float32"}
    options.out.write_text(
        json.dumps({**about, "model": options.model, "vllm": _version(), "rows": rows}, indent=1) + "\n"
    )


def summary(block: int, method: str, kind: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row of the table."""
    return {
        "block": block,
        "method": method,
        "kind": kind,
        "prompts": len(results),
        "worst_logprob_difference": max(one["difference"] for one in results),
        "same_texts": sum(one["same_text"] for one in results),
        "all_loadable_chunks_loaded": sum(one["covered"] for one in results),
        "share_of_tokens_loaded": round(
            sum(one["loaded"] for one in results) / sum(one["prompt"] for one in results), 4
        ),
    }


def _version() -> str:
    import vllm

    return str(vllm.__version__)


if __name__ == "__main__":
    main()
