"""How often the host waits for the device, row by row, counted on a pretend accelerator."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

import ragcache
from ragcache.bundled import reader_path
from ragcache.encode import PromptEncoder
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import AXES, Method
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.links import LinkTokens
from ragcache.model.reader import Reader
from ragcache.model.tuning import PositionScheme, Tuning
from ragcache.store import Codec
from ragcache_bench.pretend_accelerator import Accelerator, pretend_accelerator

SHARE = 0.15
QUESTION = "Who is she?"
_PAGES = (
    ("The harbour master is Mara.", "She came in 1931."), ("It is painted green.",), ("Nobody knows why it is.",),
    ("The ferry carries forty cars.", "It crosses every hour."),
)  # fmt: skip
_SIZES: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 2048,
    "initializer_range": 0.12,  # at the usual 0.02 attention is uniform, and a wrong mask hardly shows
}  # fmt: skip
_LINKS, _DOCUMENTS = 2, 8


@dataclass(frozen=True)
class RowWaits:
    """What the host waited for in one row's answer.

    Attributes
    ----------
    method : str
        The row.
    recompute : float or None
        Its share of recomputed tokens.
    layers : int
        Of the model.
    prefill, token : int
        Waits up to the first token's logits, and in each further token's forward. Reading which token it is comes on
        top.
    lines : dict of str to int
        Those of the prefill, by kind and line.
    """

    method: str
    recompute: float | None
    layers: int
    prefill: int
    token: int
    lines: dict[str, int]


def tiny_reader(layers: int, device: str) -> Reader:
    """A Llama of that many layers with random weights, the same on every device, and the bundled reader's tokenizer.

    It passes for tuned by any recipe, and has link tokens.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(reader_path())
    config = AutoConfig.for_model("llama", vocab_size=len(tokenizer), num_hidden_layers=layers, **_SIZES)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    made = torch.Generator().manual_seed(1)
    links = torch.randn(_DOCUMENTS, _LINKS, config.hidden_size, generator=made) * 0.12
    reader = Reader(model.to(device), tokenizer, name=f"random llama, {layers} layers", weights=f"random, {layers}")
    reader.tuning = Tuning("", "independent", "reordered", _LINKS, _DOCUMENTS, "base", 1)
    reader.links = LinkTokens(links.to(device), len(tokenizer))
    return reader


@contextmanager
def opened(folder: Path, reader: Reader, codec: Codec | None = None) -> Iterator[tuple[Engine, list[Chunk]]]:
    """An engine over six short chunks of four documents, which are ingested if the folder is empty."""
    with Index(folder, reader, codec=codec) as index:
        for n, page in enumerate(_PAGES):
            starts = [" ".join(page).index(text) for text in page]
            index.put(f"doc{n}", "", [(text, at, at + len(text)) for text, at in zip(page, starts, strict=True)], {})
        names = {row.text: row.id for row in index.catalog.all_chunks()}
        yield Engine(reader, index), index.chunks([names[text] for page in _PAGES for text in page])


def encode_for(engine: Engine, chunks: Sequence[Chunk], row: Method) -> None:
    """Make what a row loads; what is kept from prompts comes from one with two of the chunks."""
    suit(engine.reader, row)
    if isinstance(row.encode, PromptEncoder):
        engine.answer(QUESTION, chunks[:2], method=row, sampling=Sampling(max_new_tokens=1))
    elif row.encode is not None:

        def others(chunk: str, count: int) -> list[str]:
            return list(islice((one.id for one in chunks if one.id != chunk), count))

        list(engine.index.encode(row.encode, neighbours=others))


def suit(reader: Reader, row: Method) -> None:
    """Have the reader pass for one that was tuned as the row asks."""
    if row.finetuned and reader.tuning:
        positions: PositionScheme = "composite" if row.name.endswith("composite") else "reordered"
        reader.tuning = replace(reader.tuning, recipe=row.finetuned, positions=positions)


def share_of(row: Method, share: float = SHARE) -> float | None:
    """The share that a row is asked for: none where its cost is fixed."""
    return None if row.recompute is None else share


def count_waits(layers: int, rows: Sequence[Method] = tuple(METHODS.values())) -> list[RowWaits]:
    """Every row's waits, on a model of that many layers, with KV that is read from files.

    Rows that differ in nothing but the model that they take do the same, and are counted once.

    Parameters
    ----------
    layers : int
        Of the model.
    rows : sequence of Method
        Rows of the table.
    """
    counted: dict[tuple[str, ...], RowWaits] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folder = Path(place)
        with opened(folder, tiny_reader(layers, "cpu")) as (engine, chunks):
            for row in rows:
                encode_for(engine, chunks, row)
        accelerator = stack.enter_context(pretend_accelerator(Path(ragcache.__file__).parent))
        engine, chunks = stack.enter_context(opened(folder, tiny_reader(layers, "cuda")))
        engine.prefill(QUESTION, chunks, method="naive")  # what is done once in a process is no part of a prompt
        for row in rows:
            if _axes(row) not in counted:
                counted[_axes(row)] = _count(engine, chunks, row, accelerator)
    return [replace(counted[_axes(row)], method=row.name) for row in rows]


def _axes(row: Method) -> tuple[str, ...]:
    return tuple(repr(getattr(row, axis)) for axis in AXES)


def _count(engine: Engine, chunks: Sequence[Chunk], row: Method, accelerator: Accelerator) -> RowWaits:
    suit(engine.reader, row)
    share = share_of(row)
    accelerator.restart()
    ready = engine.prefill(QUESTION, chunks, method=row, recompute=share)
    lines = {f"{wait.kind} at {wait.line}": count for wait, count in sorted(accelerator.waits.items())}
    accelerator.restart()
    ready.step(chunks[0].segment.token_ids[0])
    return RowWaits(row.name, share, engine.reader.layers, sum(lines.values()), accelerator.waits.total(), lines)
