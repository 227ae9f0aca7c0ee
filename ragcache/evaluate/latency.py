"""Time to the first token of a real shape with random weights, next to stock full prefill; speed knows no meaning."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch

from ragcache import methods
from ragcache.chunks import Chunk
from ragcache.encode import LeftContext, Prefixed
from ragcache.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.evaluate.asking import Progress, charged, silent
from ragcache.evaluate.contenders import Contender
from ragcache.index import MEMORY_BYTES, Index
from ragcache.model.reader import Reader
from ragcache.report import CacheReport

CHUNK, PREFIX, QUESTION = 512, 16, 32  # tokens
STAGES = ("load", "place", "select", "prefill")
_WORDS = 997  # the vocabulary that chunks are drawn from

#: Model type and sizes as published; the model is filled with random numbers.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2.5-0.5b": ("qwen2", {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    "qwen2.5-1.5b": ("qwen2", {
        "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True}),
    "llama-3.1-8b": ("llama", {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False}),
    "qwen3-8b": ("qwen3", {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False}),
}  # fmt: skip


@dataclass(frozen=True)
class Latency:
    """Time to the first token of one method at one context length.

    Attributes
    ----------
    context : int
        Tokens of all chunks.
    method, recompute : str, float or None
        Row of the table, nominal share.
    charged, charged_flops : float or None, float
        As in `Record`; the FLOPs are the share of full prefill's time that an ideal machine would need.
    ttft_ms, ttft_low_ms, ttft_high_ms : float
        Median, least and most over the repeats.
    speedup, speedup_low, speedup_high : float
        Full prefill's time over this one's, pair by pair: median, least, most.
    load_ms, place_ms, select_ms, prefill_ms : float
        Medians of the stages.
    """

    context: int
    method: str
    recompute: float | None
    charged: float | None
    charged_flops: float
    ttft_ms: float
    ttft_low_ms: float
    ttft_high_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    load_ms: float
    place_ms: float
    select_ms: float
    prefill_ms: float


def random_reader(kind: str, sizes: dict[str, Any], *, dtype: torch.dtype = torch.bfloat16, device: str = "") -> Reader:
    """A reader of a shape with random weights, and `word_tokenizer`.

    Parameters
    ----------
    kind : str
        Model type as transformers names it.
    sizes : dict
        Fields of its configuration.
    dtype : torch.dtype
        Of the weights.
    device : str
        Defaults to CUDA where there is one, else CPU.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda"):
        torch.backends.cuda.enable_cudnn_sdp(False)  # plans anew for every length, 40 ms a time
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    config = AutoConfig.for_model(kind, **{"max_position_embeddings": 131072, **special, **sizes})
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return Reader(model, word_tokenizer(), name=f"random {kind}", weights=f"random {sorted(sizes.items())}")


def word_tokenizer() -> Any:
    """Every word is one token, and the template's prefix has `PREFIX` of them."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<s>", "</s>", "<unk>", *(f"w{i}" for i in range(_WORDS))])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = "w w w w w w {% for m in messages %}{{ m.content }} {% endfor %}Answer:"
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=template
    )


def random_texts(count: int, words: int = CHUNK) -> list[str]:
    """Texts of random words out of the tokenizer's vocabulary; the same ones every time."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(_WORDS, (count, words), generator=generator).tolist()
    return [" ".join(f"w{word}" for word in row) for row in drawn]


def measure(
    reader: Reader,
    field: Sequence[Contender],
    context: int,
    *,
    repeats: int = 5,
    memory: bool = False,
    progress: Progress = silent,
) -> list[Latency]:
    """Time full prefill and every contender on one prompt, taking turns, after a warm-up of each.

    Parameters
    ----------
    reader : Reader
        From `random_reader`.
    field : sequence of Contender
        Full prefill always takes part.
    context : int
        Tokens of all chunks; a multiple of `CHUNK`.
    repeats : int
        Turns of each.
    memory : bool
        Keep loaded blobs in memory; else each answer reads its files, which lie in the page cache.
    progress : callable
        Called with stage, done, total.

    Raises
    ------
    InvalidArgument
        If the context is no multiple of the chunk size.
    """
    if context < CHUNK or context % CHUNK:
        raise InvalidArgument(f"the context is {context:,} tokens; it is made of chunks of {CHUNK}, so give a multiple")
    everyone = [Contender(methods.find("full")), *(one for one in field if one.method.name != "full")]
    budget = 16 * MEMORY_BYTES if memory else 0
    with (
        tempfile.TemporaryDirectory(prefix="ragcache-bench-") as folder,
        Index(folder, reader, memory_bytes=budget) as index,
    ):
        chunks = _filled(index, everyone, context, progress)
        turns = _turns(Engine(reader, index), everyone, chunks, repeats, progress)
    full = [ms for ms, _ in turns[0]]
    return [_latency(context, one, taken, full) for one, taken in zip(everyone, turns, strict=True)]


def _filled(index: Index, field: Sequence[Contender], context: int, progress: Progress) -> list[Chunk]:
    """Chunks of random words with a KV under every recipe that is asked for.

    What a KV holds does not matter to speed. So each chunk is prefilled once, by itself, and stored under every recipe:
    fusing each with ten others would take longer than everything that is measured.
    """
    index.put("random words", "", [(text, 0, len(text)) for text in random_texts(context // CHUNK)], {})
    document = index.catalog.document_by_source("random words")
    chunks = index.chunks([chunk.id for chunk in index.catalog.chunks_of(document.id if document else "")])
    encoders = {one.method.encode.recipe: one.method.encode for one in field if one.method.encode}
    for done, chunk in enumerate(chunks, 1):
        kv = index.reader.encode(chunk.segment.token_ids)
        for recipe, encoder in encoders.items():
            behind = recipe == Prefixed().recipe  # may be exact, which is decided by what stands before it
            left = index.prefix() if behind else LeftContext()
            index.save(chunk.id, encoder, replace(kv, start=len(index.prefix_segment) if behind else 0), left)
        progress("encode", done, len(chunks))
    return chunks


def _turns(
    engine: Engine, field: Sequence[Contender], chunks: Sequence[Chunk], repeats: int, progress: Progress
) -> list[list[tuple[float, CacheReport]]]:
    """Each contender's times and reports; full prefill first in every round."""
    question = _question(engine.index)
    taken: list[list[tuple[float, CacheReport]]] = [[] for _ in field]
    for turn in range(-1, repeats):  # the turn before the first warms up
        for one, mine in zip(field, taken, strict=True):
            ready = engine.prefill(question, chunks, method=one.method, recompute=one.recompute)
            if turn >= 0:
                mine.append((ready.report.ms.first_token, ready.report))
        progress("measure", turn + 1, repeats)
    return taken


def _question(index: Index) -> str:
    """As many words as make `QUESTION` tokens with what the template puts around them."""
    around = sum(len(segment) for segment in index.template.question("w")) - 1
    return " ".join(["w"] * (QUESTION - around))


def _latency(
    context: int, one: Contender, taken: Sequence[tuple[float, CacheReport]], full: Sequence[float]
) -> Latency:
    times = [ms for ms, _ in taken]
    speedups = [other / mine for other, mine in zip(full, times, strict=True)]
    report = taken[0][1]
    stages = [median(getattr(each.ms, stage) for _, each in taken) for stage in STAGES]
    return Latency(
        context, one.method.name, one.recompute, charged(report), report.charged_flops,
        median(times), min(times), max(times), median(speedups), min(speedups), max(speedups), *stages,
    )  # fmt: skip

