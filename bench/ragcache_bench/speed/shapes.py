"""Models to time: published shapes filled with random numbers, since speed knows no meaning, or a checkpoint."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ragcache.encode import Encoder, LeftContext, Prefixed
from ragcache.encode.harvested import OVERHEAD
from ragcache.errors import InvalidArgument
from ragcache.index.chunks import Chunk, document_id
from ragcache.index.index import Index
from ragcache.model.buffer import ChunkKV
from ragcache.model.plan import HIDDEN
from ragcache.model.reader import Reader
from ragcache.report import Progress
from ragcache_bench.contenders import Contender

CHUNK, PREFIX, QUESTION = 512, 16, 32  # tokens
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

    device = _prepared(device)
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    config = AutoConfig.for_model(kind, **{"max_position_embeddings": 131072, **special, **sizes})
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    return Reader(model, word_tokenizer(), name=f"random {kind}", weights=f"random {sorted(sizes.items())}")


def checkpoint_reader(name: str, *, dtype: str, device: str = "") -> Reader:
    """A reader of a checkpoint's weights, and `word_tokenizer`: chunks are to have the tokens that are asked for.

    Parameters
    ----------
    name : str
        Hub id or folder.
    dtype, device : str
        As in `Reader.load`; no device is its default.

    Raises
    ------
    InvalidArgument
        If nothing by that name can be loaded, or it has fewer tokens than the tokenizer.
    """
    loaded, tokenizer = Reader.load(name, dtype=dtype, device=_prepared(device)), word_tokenizer()
    rows = loaded.model.get_input_embeddings().num_embeddings
    if rows < len(tokenizer):
        raise InvalidArgument(
            f"{name} has {rows:,} tokens, but random text takes {len(tokenizer):,}; name another --shape"
        )
    return Reader(loaded.model, tokenizer, name=Path(name).name, weights=loaded.fingerprint)


def _prepared(device: str) -> str:
    """The device to time on, CUDA where there is one."""
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


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


def random_texts(count: int, words: int = CHUNK, seed: int = 0) -> list[str]:
    """Texts of random words out of the tokenizer's vocabulary; the same ones for a seed."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(_WORDS, (count, words), generator=generator).tolist()
    return [" ".join(f"w{word}" for word in row) for row in drawn]


def sized_texts(lengths: Sequence[int], seed: int = 0) -> list[str]:
    """Texts of so many random words."""
    whole = random_texts(len(lengths), max(lengths), seed)
    return [" ".join(text.split()[:length]) for text, length in zip(whole, lengths, strict=True)]


def question(index: Index, number: int = 0) -> str:
    """As many words as make `QUESTION` tokens with what the template puts around them; the first one is its number."""
    around = sum(len(segment) for segment in index.template.question("w")) - 1
    return " ".join([f"w{number % _WORDS}", *["w"] * (QUESTION - around - 1)])


def filled(index: Index, field: Sequence[Contender], texts: Sequence[str], progress: Progress) -> list[Chunk]:
    """Put texts into an index as one document's chunks, as `filled_alike` does."""
    [chunks] = filled_alike([(index, field)], [texts], progress)
    return chunks


def filled_alike(
    indexes: Sequence[tuple[Index, Sequence[Contender]]], documents: Sequence[Sequence[str]], progress: Progress
) -> list[list[Chunk]]:
    """Put the same documents' texts into indexes as chunks with a KV under every recipe that is asked for in each.

    What a KV holds does not matter to speed. So each chunk is prefilled once, by itself, and stored under every recipe:
    fusing each with ten others would take longer than everything that is measured.
    """
    chunks, recipes = [], []
    for index, field in indexes:
        for number, texts in enumerate(documents):
            index.put(f"random words {number}", "", [(text, 0, len(text)) for text in texts], {})
        rows = [index.catalog.chunks_of(document_id(f"random words {number}")) for number in range(len(documents))]
        chunks.append(index.chunks([row.id for document in rows for row in document]))
        recipes.append({one.method.encode.recipe: one.method.encode for one in field if one.method.encode})
    for done, alike in enumerate(zip(*chunks, strict=True), 1):
        kv = indexes[0][0].reader.encode(alike[0].segment.token_ids)
        for (index, _), chunk, encoders in zip(indexes, alike, recipes, strict=True):
            for encoder in encoders.values():
                _store(index, chunk, kv, encoder)
        progress("encode", done, len(chunks[0]))
    return chunks


def _store(index: Index, chunk: Chunk, kv: ChunkKV, encoder: Encoder) -> None:
    behind = encoder.recipe == Prefixed().recipe  # may be exact, which is decided by what stands before it
    left = index.prefix() if behind else LeftContext()
    start = len(index.prefix_segment) if behind else 0
    extras = _extras(index.reader, encoder, len(kv))
    index.save(chunk.id, encoder, replace(kv, start=start, extras=extras), left)


def _extras(reader: Reader, encoder: Encoder, tokens: int) -> dict[str, Tensor]:
    """Something of the right size for everything that an encoding stores beside K and V."""
    width = reader.model.config.get_text_config().hidden_size
    sizes = {HIDDEN: torch.zeros(tokens, width, dtype=reader.model.dtype)}
    sizes[OVERHEAD] = torch.full((tokens,), 0.5)  # a chunk that has lost its context: the nominal share is recomputed
    return {name: sizes.get(name, torch.zeros(tokens)) for name in encoder.extras}


def whole(context: int, chunk: int) -> None:
    """Refuse a context that is not made of whole chunks.

    Raises
    ------
    InvalidArgument
        If it is no multiple of the chunk's tokens.
    """
    if chunk < 1 or context < chunk or context % chunk:
        raise InvalidArgument(f"a context of {context:,} tokens is no number of chunks of {chunk:,}; give a multiple")
