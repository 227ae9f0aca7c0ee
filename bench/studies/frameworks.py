"""Both frameworks against the classes that they have for Hugging Face models: the same answers, and how much sooner.

The bundled corpus is put into an index through each framework's vector store, and 100 questions are asked: of
`RagCache` itself, over the documents that the framework retrieved (the exact path), and with those pasted into a prompt
(the two-line path), there also with everything recomputed, beside the framework's ordinary class on the same weights.
Then the time until a class hands over one token, in turns, for the bundled reader and a shape with random weights:

    python bench/studies/frameworks.py --out docs/benchmarks/frameworks.json

It needs `langchain-huggingface` and `llama-index-llms-huggingface` beside both extras.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer
from frameworks_paths import LangChain, LlamaIndex, Paths
from ragcache_bench import report
from ragcache_bench.markdown import made_by, table
from ragcache_bench.speed.shapes import SHAPES, random_reader, random_texts
from ragcache_cli.terminal import progress

from ragcache import RagCache, Reader
from ragcache.bundled import corpus_path, questions, reader_path
from ragcache.retrieve import Limit, Splitter

METHODS = ("auto", "prophetkv")
TOKENS = 24  # most of an answer
ORDINARY = "ordinary class"
FRAMEWORKS: tuple[type[Paths], ...] = (LangChain, LlamaIndex)


@dataclass
class Same:
    """How often two ways gave the same: of `n` questions."""

    framework: str
    what: str
    same: int
    n: int


def pages(rag: RagCache) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """The corpus as `ragcache ingest` splits it: each page's chunks with their places."""
    end = len(rag.index.template.chunk("", "").token_ids)
    limit = Limit(lambda text: len(rag.index.template.plain(text)), rag.chunk_tokens - end, "the reader")
    for file in sorted(corpus_path().rglob("*.md")):
        pieces = Splitter([limit]).split(file.read_text(encoding="utf-8"), "markdown")
        yield str(file.relative_to(corpus_path())), [(piece.start, piece.text) for piece in pieces]


def answers(kind: type[Paths], place: Path, count: int, advance: Callable[[str, int, int], None]) -> list[Same]:
    """Ask through a framework, and beside it."""
    seen: dict[str, list[bool]] = {}

    def note(what: str, same: bool) -> None:
        seen.setdefault(what, []).append(same)

    with RagCache.open(place, dtype="float32") as rag:
        paths = kind(rag, METHODS, max_tokens=TOKENS)
        for source, chunks in pages(rag):
            paths.add(source, chunks)
        paths.ordinary(*_stock(str(reader_path()), torch.float32))
        for done, asked in enumerate(questions()[:count]):
            advance(f"{kind.__name__}: questions", done, count)
            found = paths.retrieve(asked.question, rag.top_k)
            for method in METHODS:
                own = rag.ask(asked.question, method=method, sampling=paths.sampling)
                exact, _ = paths.exact(asked.question, found, method=method)
                note(f"exact path: the answer of the command line, {method}", exact == own.text)
            _, told = paths.pasted(asked.question, found, method="auto")
            states = [chunk["cache"] for chunk in told["chunks"]]
            note("two lines: every retrieved chunk a hit", len(states) == rag.top_k and "miss" not in states)
            prompt = paths.prompt(asked.question, found)
            stream = rag.engine.complete(prompt, recompute=1.0, sampling=paths.sampling)
            stock, _ = rag.reader.stock(stream.prompt.token_ids)
            note("all recomputed: logits of a stock prefill, 1e-4", float((stream.logits - stock).abs().max()) <= 1e-4)
            note("all recomputed: the ids of the ordinary class", list(stream.prompt.token_ids) == paths.ids(prompt))
            full, _ = paths.pasted(asked.question, found, method="auto", recompute=1.0)
            note("all recomputed: the answer of the ordinary class", full == paths.stock(prompt, TOKENS))
    return [Same(kind.__name__, what, sum(one), len(one)) for what, one in seen.items()]


def first_tokens(
    reader: Reader, stock: tuple[Any, Any], texts: Sequence[str], question: str, repeats: int
) -> Iterator[dict[str, Any]]:
    """Time until each framework's classes hand over one token of the same prompt, in turns, after a warm-up of each."""
    for kind in FRAMEWORKS:
        with tempfile.TemporaryDirectory() as folder, RagCache.open(folder, model=reader) as rag:
            paths = kind(rag, METHODS, max_tokens=1)
            paths.ordinary(*stock)
            for number, text in enumerate(texts):
                paths.add(f"page {number}", [(0, text)])
            prompt = paths.prompt(question, [paths.piece(text) for text in texts])
            ways: dict[str, Callable[[], object]] = {
                ORDINARY: partial(paths.stock, prompt, 1),
                "auto": partial(paths.answer, prompt, method="auto"),
                "prophetkv, 15 %": partial(paths.answer, prompt, method="prophetkv", recompute=0.15),
            }
            taken = in_turns(ways, repeats)
            tokens = len(rag.engine.complete(prompt).prompt)
        for name, ms in taken.items():
            ratios = [one / other for one, other in zip(taken[ORDINARY], ms, strict=True)]
            yield {
                "framework": kind.__name__, "reader": reader.name, "tokens": tokens, "way": name, "ms": median(ms),
                "ms_low": min(ms), "ms_high": max(ms), "ratio": median(ratios), "ratio_low": min(ratios),
                "ratio_high": max(ratios),
            }  # fmt: skip


def in_turns(ways: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each way, one after the other and again."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:  # the first was the warm-up
                taken[name].append((time.perf_counter() - began) * 1e3)
    return taken


def _stock(name: str, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(name, dtype=dtype).eval(), AutoTokenizer.from_pretrained(name)


def _timed(repeats: int, contexts: Sequence[int], shape: str) -> Iterator[dict[str, Any]]:
    place = str(reader_path())
    texts = [text for _, text in zip(range(24), _paragraphs(), strict=False)]
    bundled = Reader.load(place, dtype="bfloat16")
    bundled.name = "bundled"
    yield from first_tokens(bundled, _stock(place, torch.bfloat16), texts, "Who leads the Tide project?", repeats)
    for context in contexts:
        reader = random_reader(*SHAPES[shape])
        reader.name = f"{shape}, random weights"
        stock = random_reader(*SHAPES[shape])
        words = random_texts(context // 512)
        yield from first_tokens(reader, (stock.model, stock.tokenizer), words, "w1 w2 w3 w4", repeats)


def _paragraphs() -> Iterator[str]:
    for file in sorted(corpus_path().rglob("*.md")):
        yield from filter(None, map(str.strip, file.read_text(encoding="utf-8").split("\n\n")))


def main(
    count: Annotated[int, typer.Option(help="Questions.")] = 100,
    repeats: Annotated[int, typer.Option(help="Timed turns of each way.")] = 7,
    contexts: Annotated[str, typer.Option(help="Tokens of context for the shape; none where empty.")] = "2048,4096",
    shape: Annotated[str, typer.Option(help="A shape of `ragcache bench latency`.")] = "qwen2.5-0.5b",
    out: Annotated[Path, typer.Option(help="JSON to write; the table goes beside it.")] = Path("frameworks.json"),
) -> None:
    """Ask, time, and write both down."""
    with progress() as bars, tempfile.TemporaryDirectory() as folder:
        same = [one for kind in FRAMEWORKS for one in answers(kind, Path(folder) / kind.__name__, count, bars)]
    times = list(_timed(repeats, [int(context) for context in contexts.split(",") if context], shape))
    about = report.meta(device=torch.device("cpu"), reader="bundled", repeats=repeats, methods=METHODS)
    found = {"meta": about, "rows": [vars(one) for one in same], "times": times}
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    answered = table(list(vars(same[0])), [list(vars(one).values()) for one in same])
    timed = table(list(times[0]), [list(one.values()) for one in times])
    out.with_suffix(".md").write_text(f"{answered}\n\n{timed}\n\n{made_by(about)}\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
