"""Does vLLM with the connector answer as our own engine does? Runs in the environment that `make vllm-check` makes.

    .venv-vllm/bin/python bench/studies/vllm_agreement.py --out docs/benchmarks/vllm-agreement-reader.json

Prompts of the demo corpus in fp32: chunks in random order, the same chunk twice, unknown text between chunks, and a
chunk that was changed in the middle. A chunk of less than ten tokens behind unknown text is text for both, since the
connector does not look for it there. First-token log-probabilities over the whole vocabulary, the tokens that are
recomputed, and the greedy texts of both are compared. Our engine gets the very same tokens and chunks.

A chunk's neighbours, for `fusionrag`, are the three behind it in the catalogue. Where several documents have a text,
tokens do not say with whose neighbours it was fused, so that method is asked over the other prompts only.
"""

import argparse
import gc
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from studied_vllm import first_logprobs, generate, start_vllm, version
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

TOKENS, NEIGHBOURS = 12, 3
SHORT = 10  # tokens
KINDS = {"shuffled": 24, "duplicate": 8, "unknown text between chunks": 8, "a chunk changed in the middle": 8}
SHARES = (0.05, 0.15, 0.3)
SELECTIVE = ("auto", "epic", "cacheblend", "prophetkv", "fusionrag")
#: Method and share; None where the row takes none.
ROWS = [("naive", None), ("auto", 0.0), *((method, share) for method in SELECTIVE for share in SHARES)]
#: What is measured again with other blocks.
FEW = [("naive", None), ("auto", 0.05), ("cacheblend", 0.15), ("prophetkv", 0.15)]


@dataclass(frozen=True, eq=False)
class Answered:
    """What an engine says to a prompt."""

    logprobs: Tensor
    recomputed: list[int]
    text: str


@dataclass(eq=False)
class Case:
    """A prompt as chunks and other text, and what our engine says to it, by method and share."""

    kind: str
    parts: Sequence[Chunk | Segment]
    question: str
    several: bool = False  # whether a text of it stands in several documents
    token_ids: tuple[int, ...] = ()
    answers: dict[tuple[str, float | None], Answered] = field(default_factory=dict)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks that can be loaded."""
        return tuple(part for part in self.parts if isinstance(part, Chunk))


def build_index(folder: Path, model: str) -> Index:
    """The demo corpus, a paragraph a chunk, with the KV of all methods."""
    index = Index(folder, load_reader(model, dtype="float32"))
    for file in sorted(path for path in bundled.corpus_path().rglob("*") if path.is_file()):
        text, pieces, end = file.read_text(), list[tuple[str, int, int]](), 0
        for paragraph in filter(str.strip, text.split("\n\n")):
            start = text.index(paragraph, end)
            end = start + len(paragraph)
            pieces.append((paragraph, start, end))
        index.put(str(file.relative_to(bundled.corpus_path())), "", pieces, {})
    ids = [id for id, _ in index.catalog.places()]
    here = {id: number for number, id in enumerate(ids)}

    def behind(chunk: str, count: int) -> list[str]:
        return [*ids[here[chunk] + 1 :], *ids[: here[chunk]]][: min(count, NEIGHBOURS)]

    for method in ("naive", "auto", "fusionrag"):
        encoder = find_method(method).encode
        for _ in index.encode(encoder, neighbours=behind) if encoder else ():
            pass
    return index


def cases(index: Index) -> Iterator[Case]:
    """Prompts of each kind; chunks of one document may stand in any of them."""
    rng, template = random.Random(0), index.template
    ids, questions = [id for id, _ in index.catalog.places()], bundled.questions()
    for kind, count in KINDS.items():
        for question in rng.sample(questions, count):
            chunks = index.chunks(rng.sample(ids, rng.randint(4, 9)))
            middle = 1 + len(chunks) // 2
            parts: list[Chunk | Segment] = [index.prefix_segment, *chunks]
            if kind == "duplicate":
                parts.append(chunks[0])
            elif kind == "unknown text between chunks":
                parts.insert(middle, Segment(template.plain("Nobody has ever ingested these words.\n\n")))
            elif kind == "a chunk changed in the middle":
                changed = list(chunks[middle - 1].segment.token_ids)
                changed[len(changed) // 2] += 1
                parts[middle] = Segment(tuple(changed))
            copies = index.catalog.copies([chunk.id for chunk in chunks])
            several = any(len(rows) > 1 for rows in copies.values())
            yield Case(kind, list(as_found(parts)), question.question, several)


def as_found(parts: Sequence[Chunk | Segment]) -> Iterator[Chunk | Segment]:
    """The parts as the connector sees them: a chunk of few tokens is not looked for behind unknown text."""
    behind_known = True
    for number, part in enumerate(parts):
        if isinstance(part, Chunk) and not behind_known and len(part.segment) < SHORT:
            part = Segment(part.segment.token_ids)
        yield part
        behind_known = isinstance(part, Chunk) or number == 0


def asked_of(method: str, prompts: Sequence[Case]) -> list[Case]:
    """The prompts of which tokens say what a method loads."""
    return [case for case in prompts if method != "fusionrag" or not case.several]


def answer_ourselves(engine: Engine, case: Case, method: str, share: float | None) -> None:
    """What our engine says."""
    asked, suffix = engine.index.template.question(case.question)
    parts = [
        part if isinstance(part, Segment) else ChunkPlace(part, len(part.segment), Segment(())) for part in case.parts
    ]
    row, frame = find_method(method), ParsedPrompt([*parts, asked, suffix], asked, case.question)
    request = Request(
        case.question, case.chunks, frame, row, row.budget(share), Sampling(max_new_tokens=TOKENS),
        Clock(engine.reader.device),
    )  # fmt: skip
    prefilled = choose_strategy(row).prefill(request, engine.index)
    case.token_ids = prefilled.prompt.token_ids
    case.answers[method, share] = Answered(
        torch.log_softmax(prefilled.logits.float(), -1),
        prefilled.recomputed.nonzero().flatten().tolist(),
        Stream(engine.reader, request, prefilled).answer.text.strip(),
    )


def watch_choices() -> list[list[int]]:
    """The tokens that workers choose from now on, load by load."""
    from vllm_ragcache import recompute

    seen, choose = list[list[int]](), recompute.choose_rows

    def watched(*given: Any) -> Any:
        chosen = choose(*given)
        seen.append(chosen.tolist())
        return chosen

    setattr(recompute, "choose_rows", watched)  # noqa: B010
    return seen


def compare(llm: Any, case: Case, method: str, share: float | None, chosen: list[list[int]]) -> dict[str, Any]:
    """How far vLLM is from our engine on one prompt."""
    ours = case.answers[method, share]
    asked = {"method": method} | ({} if share is None else {"recompute": share})
    chosen.clear()
    one = generate(llm, case.token_ids, 1, ragcache=asked, logprobs=True)
    same = set(chosen[0] if chosen else ()) & set(ours.recomputed)
    theirs = first_logprobs(one)
    text = generate(llm, case.token_ids, TOKENS, ragcache=asked)
    report = one.kv_transfer_params["ragcache"]
    return {
        "difference": float((theirs - ours.logprobs[: len(theirs)]).abs().max()),
        "recomputed": len(ours.recomputed),
        "same_recomputed": len(same),
        "same_text": text.outputs[0].text.strip() == ours.text,
        "loaded": report["loaded_tokens"],
        "prompt": len(case.token_ids),
        "covered": report["chunks"] == len(case.chunks) and not report["refused"],
    }


def main() -> None:
    """Compare, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bundled")
    parser.add_argument("--blocks", type=int, nargs="+", default=[32, 128], help="all rows with the first of them")
    parser.add_argument("--methods", nargs="+", help="some of them only")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(Path(folder) / "index", options.model)
        engine, prompts = Engine(index.reader, index), list(cases(index))
        wanted = [row for row in ROWS if options.methods is None or row[0] in options.methods]
        for method, share in wanted:
            for case in asked_of(method, prompts):
                answer_ourselves(engine, case, method, share)
        chosen = watch_choices()
        for number, block in enumerate(options.blocks):
            llm = start_vllm(options.model, index.path, max_model_len=2048, block_size=block)
            for method, share in [row for row in wanted if row in FEW or not number]:
                found = defaultdict[str, list[dict[str, Any]]](list)
                for case in asked_of(method, prompts):
                    found[case.kind].append(compare(llm, case, method, share, chosen))
                rows += [summary(block, method, share, kind, results) for kind, results in found.items()]
                print(*rows[-len(found) :], sep="\n", flush=True)
            del llm
            gc.collect()
    blocks = " ".join(map(str, options.blocks))
    command = f"python bench/studies/vllm_agreement.py --model {options.model} --blocks {blocks}"
    command += f" --methods {' '.join(options.methods)}" if options.methods else ""
    about = {"command": command, "dtype": "float32"}
    options.out.write_text(
        json.dumps({**about, "model": options.model, "vllm": version(), "rows": rows}, indent=1) + "\n"
    )


def summary(
    block: int, method: str, share: float | None, kind: str, results: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """One row of the table."""
    return {
        "block": block,
        "method": method,
        "recompute": share,
        "kind": kind,
        "prompts": len(results),
        "worst_logprob_difference": max(one["difference"] for one in results),
        "same_texts": sum(one["same_text"] for one in results),
        "recomputed_tokens": sum(one["recomputed"] for one in results),
        "same_recomputed_tokens": sum(one["same_recomputed"] for one in results),
        "all_loadable_chunks_loaded": sum(one["covered"] for one in results),
        "share_of_tokens_loaded": round(
            sum(one["loaded"] for one in results) / sum(one["prompt"] for one in results), 4
        ),
    }


if __name__ == "__main__":
    main()
