"""What a device says, against what the CPU says: a tiny model over a tiny index, by every row and in every way.

The model is the same on every device, so an index that is made on one is opened on the other.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ragcache.bundled import reader_path
from ragcache.encode import PromptEncoder
from ragcache.engine.chat import Message
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.links import LinkTokens
from ragcache.model.reader import Reader
from ragcache.model.tuning import PositionScheme, Tuning
from ragcache.store import Codec

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
_GREEDY = Sampling(max_new_tokens=3)
_DRAWN = Sampling(max_new_tokens=3, temperature=0.8, top_k=20, top_p=0.9, repetition_penalty=1.2, seed=7)
#: Answers by other ways than one question at a time, by name; what is drawn depends on the device's own generator.
WAYS = ("stream", "sampling", "drafts", "batch", "history", "memory tier")


@dataclass(frozen=True, eq=False)
class Outcome:
    """One prompt's answer.

    Attributes
    ----------
    logits : tuple of Tensor
        (vocabulary,) fp32 each, of the first token and of those behind two decoded ones.
    recomputed : Tensor
        (slots,) bool.
    """

    logits: tuple[Tensor, ...]
    recomputed: Tensor

    def differs(self, other: "Outcome") -> float:
        """The largest difference of a logit."""
        return max(float((a - b).abs().max()) for a, b in zip(self.logits, other.logits, strict=True))

    def chose_as(self, other: "Outcome") -> bool:
        """Whether the same tokens were recomputed, and the same ones said."""
        said = [[int(one.argmax()) for one in outcome.logits] for outcome in (self, other)]
        return said[0] == said[1] and torch.equal(self.recomputed, other.recomputed)


def tiny_reader(layers: int, device: str, dtype: torch.dtype = torch.float32) -> Reader:
    """A Llama of that many layers with random weights, the same on every device, and the bundled reader's tokenizer.

    It passes for tuned by any recipe, and has link tokens.
    """
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(reader_path())
    config = AutoConfig.for_model("llama", vocab_size=len(tokenizer), num_hidden_layers=layers, **_SIZES)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).to(dtype)
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


def encode_rows(folder: Path, reader: Reader, rows: Sequence[Method] = tuple(METHODS.values())) -> None:
    """Make what rows load, in a folder."""
    with opened(folder, reader) as (engine, chunks):
        for row in rows:
            encode_for(engine, chunks, row)


def prefill(engine: Engine, chunks: Sequence[Chunk], row: Method, share: float | None) -> Outcome:
    """A prompt by a row, and two decoded tokens."""
    suit(engine.reader, row)
    ready = engine.prefill(QUESTION, chunks, method=row, recompute=share, max_new_tokens=3)
    logits = [ready.logits]
    for _ in range(2):
        logits.append(ready.step(int(logits[-1].argmax())))
    return Outcome(tuple(one.cpu() for one in logits), ready.recomputed)


def answer(engine: Engine, chunks: Sequence[Chunk], way: str) -> Any:
    """What comes of one of the `WAYS`."""
    if way == "stream":
        return list(engine.stream(QUESTION, chunks, sampling=_GREEDY))
    if way == "sampling":
        return engine.answer(QUESTION, chunks, sampling=_DRAWN).token_ids
    if way == "drafts":
        said = engine.answer(QUESTION, chunks, sampling=_GREEDY).token_ids
        drafts = [(*said[:2], said[0]), said]
        return said, engine.stream(QUESTION, chunks, sampling=_GREEDY, drafts=drafts).answer.token_ids
    if way == "batch":
        pairs = [(QUESTION, chunks), (QUESTION, chunks), ("Where is it?", chunks[::-1])]
        return [one.token_ids for one in engine.answers(pairs, sampling=_GREEDY)]
    if way == "history":
        history = [Message("user", "Hello."), Message("assistant", "Good morning.")]
        return engine.answer(QUESTION, chunks, history=history, sampling=_GREEDY).token_ids
    engine.index.release()  # from files, then from memory
    return [engine.answer(QUESTION, chunks, sampling=_GREEDY).token_ids for _ in range(2)]
