"""Sixteen requests at once: how many a second does vLLM answer, with the connector, and with its own prefix cache?

    .venv-vllm/bin/python bench/studies/vllm_throughput.py --xquad xquad.en.json --out throughput.json

Every request asks about six of 24 paragraphs of XQuAD in a random order, as retrieval brings them. Four systems take
turns, so that what else the machine does falls on all of them: full prefill (each request with a salt of its own, so
that nothing is shared), vLLM's prefix cache as it comes, the default method, and `naive`. All get the very same
prompts, new ones in every round, and the first round is not counted: after it each has in its cache what earlier rounds
left there. One process with the connector serves all four; for the first two it is switched off in the request, where
it does nothing. Wall time and the processor's own are both kept, of one thread.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from studied_vllm import start_vllm, version

from ragcache.index.index import Index
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.loading import load_reader

PARAGRAPHS, TOKENS = 24, 16
#: What each system asks of the connector; full prefill gets a salt, too.
SYSTEMS: dict[str, Any] = {"full": False, "prefix cache": False, DEFAULT_METHOD: DEFAULT_METHOD, "naive": "naive"}


def fill_index(index: Index, xquad: Path) -> list[str]:
    """Ingest the first paragraph of each article; a question to each."""
    articles = json.loads(xquad.read_text())["data"][:PARAGRAPHS]
    for article in articles:
        text = article["paragraphs"][0]["context"]
        index.put(article["title"], "", [(text, 0, len(text))], {})
    for name in (DEFAULT_METHOD, "naive"):
        encoder = find_method(name).encode
        for _ in index.encode(encoder) if encoder else ():
            pass
    return [article["paragraphs"][0]["qas"][0]["question"] for article in articles]


def write_prompts(
    index: Index, questions: Sequence[str], count: int, paragraphs: int, rng: random.Random
) -> list[list[int]]:
    """So many prompts, each of so many paragraphs in random order."""
    ids, prompts = [id for id, _ in index.catalog.places()], list[list[int]]()
    for question in rng.sample(questions, count):
        chunks = index.chunks(rng.sample(ids, paragraphs))
        parts = [index.prefix_segment, *(chunk.segment for chunk in chunks), *index.template.question(question)]
        prompts.append([token for part in parts for token in part.token_ids])
    return prompts


def run_turn(llm: Any, system: str, prompts: Sequence[Sequence[int]], number: int) -> dict[str, float]:
    """All prompts at once, by one system."""
    from vllm import SamplingParams

    extra = {"kv_transfer_params": {"ragcache": SYSTEMS[system]}}
    params = SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True, extra_args=extra)
    asked: list[dict[str, Any]] = [{"prompt_token_ids": list(ids)} for ids in prompts]
    for request, one in enumerate(asked):
        one |= {"cache_salt": f"{number} {request}"} if system == "full" else {}
    wall, processor = time.perf_counter(), time.process_time()
    outputs = llm.generate(asked, params, use_tqdm=False)
    return {
        "wall": time.perf_counter() - wall,
        "processor": time.process_time() - processor,
        "cached": sum(one.num_cached_tokens or 0 for one in outputs) / sum(map(len, prompts)),
    }


def summarise(turns: Mapping[str, Sequence[Mapping[str, float]]], requests: int) -> list[dict[str, Any]]:
    """A row a system."""
    middle = {
        system: {key: median(turn[key] for turn in taken) for key in ("wall", "processor", "cached")}
        for system, taken in turns.items()
    }
    return [
        {
            "system": system,
            "requests_per_second": round(requests / one["wall"], 3),
            "requests_per_processor_second": round(requests / one["processor"], 3),
            "times_full": round(middle["full"]["processor"] / one["processor"], 2),
            "share_of_tokens_from_a_cache": round(one["cached"], 3),
            "processor_seconds": [round(turn["processor"], 2) for turn in turns[system]],
        }
        for system, one in middle.items()
    ]


def main() -> None:
    """Ask in turns, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xquad", type=Path, required=True)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--paragraphs", type=int, default=6, help="of each prompt")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    turns: dict[str, list[dict[str, float]]] = {system: [] for system in SYSTEMS}
    with (
        tempfile.TemporaryDirectory() as folder,
        Index(Path(folder) / "index", load_reader(options.model, dtype="float32")) as index,
    ):
        questions, rng = fill_index(index, options.xquad), random.Random(0)
        llm = start_vllm(options.model, index.path, max_model_len=4096, max_num_seqs=options.requests, block_size=32)
        for number in range(options.rounds + 1):
            prompts = write_prompts(index, questions, options.requests, options.paragraphs, rng)
            for system, taken in turns.items():
                turn = run_turn(llm, system, prompts, number)
                print(number, system, turn, flush=True)
                if number:
                    taken.append(turn)
    about = {
        "command": f"python bench/studies/vllm_throughput.py --xquad xquad.en.json --model {options.model} "
        f"--requests {options.requests} --paragraphs {options.paragraphs} --rounds {options.rounds}",
        "model": options.model, "dtype": "float32", "vllm": version(), "threads": 1,
        "requests_at_once": options.requests, "rounds": options.rounds, "paragraphs_each": options.paragraphs,
        "tokens": TOKENS,
    }  # fmt: skip
    options.out.write_text(json.dumps(about | {"rows": summarise(turns, options.requests)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
