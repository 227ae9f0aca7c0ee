"""Rows of tuned models, derived anew: one stock forward with a mask, positions and embeddings written out by hand.

The model's weights come from adapter files, merged here by the formula; nothing of ours lays out the prompt, encodes a
chunk, moves a key or embeds a link token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, write_adapter
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import DynamicCache

from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.adapter_config import WEIGHTS
from ragcache.model.architecture import cache_argument
from ragcache.model.reader import Reader
from ragcache.model.tuning import LINKS, Tuning, write_tuning

TEXTS = ("Tide is based in Oslo.", "The mill grinds rye, and oats too.", "She sails.", "It closed in 1931, in May.")
UNCACHED = "Nobody has ingested this one."
QUESTION = "Where is it based?"
DOCUMENTS = 6
CLOSE = 1e-4
#: Row and link tokens a chunk.
ROWS = (("turborag", 0), ("turborag-composite", 0), ("block-attention", 0), ("kvlink", 0), ("kvlink", 1), ("kvlink", 5))
ORDERS = ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3), (1, 0, 1))
ATTENTION = {"block-attention": "alternating"}


@dataclass(frozen=True)
class Stage:
    """An engine on files, and a stock model with the same weights.

    Attributes
    ----------
    links : Tensor
        (documents, links, width).
    """

    engine: Engine
    model: Any
    row: str
    links: Tensor

    def prefill(self, texts: Sequence[str], share: float = 0.0) -> Prefilled:
        """The engine's own; a text that was never ingested is uncached."""
        names = {row.text: row.id for row in self.engine.index.catalog.all_chunks()}
        chunks = [self.engine.index.chunks([names[text]])[0] if text in names else text for text in texts]
        return self.engine.prefill(QUESTION, chunks, method=self.row, recompute=share)

    def parts(self, texts: Sequence[str]) -> list[tuple[str, Tensor]]:
        """The prompt's parts and their embeddings, (tokens, width) each."""
        template = self.engine.index.template
        table = self.model.get_input_embeddings().weight
        found = [("system", table[list(template.prefix.token_ids)])]
        for place, text in enumerate(texts):
            found.append(("chunk", table[list(template.plain(text + "\n\n"))]))
            if self.row == "kvlink" and self.links.shape[1]:
                found.append(("links", self.links[place]))
        return [*found, *(("question", table[list(part.token_ids)]) for part in template.question(QUESTION))]


def merge(model: Any, adapter: Path) -> None:
    """Add B A * alpha / r: 6 over 3 in `write_adapter`."""
    pairs = load_file(adapter / WEIGHTS)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            module = f"base_model.model.{name.removesuffix('.weight')}"
            if f"{module}.lora_A.weight" in pairs:
                weight += pairs[f"{module}.lora_B.weight"] @ pairs[f"{module}.lora_A.weight"] * 6 / 3


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Stage]]:
    made: dict[tuple[str, str, int], Stage] = {}

    def get(architecture: str, row: str, links: int) -> Stage:
        key = architecture, row, links
        if key not in made:
            made[key] = make(tmp_path_factory.mktemp("tuned"), *key)
        return made[key]

    yield get
    for stage in made.values():
        stage.engine.index.close()


def make(folder: Path, architecture: str, row: str, links: int) -> Stage:
    model = tiny_model(architecture)
    model.save_pretrained(folder / "base")
    byte_tokenizer().save_pretrained(folder / "base")
    adapter = write_adapter(folder / "adapter", model)
    positions = "composite" if row == "turborag-composite" else "reordered"
    documents = DOCUMENTS if links else 0
    write_tuning(adapter, Tuning(row, ATTENTION.get(row, "independent"), positions, links, documents, "base", 1))
    width = model.config.hidden_size
    embeddings = torch.randn(DOCUMENTS, links, width, generator=torch.Generator().manual_seed(3)) * 0.3
    if links:
        save_file({"links": embeddings}, adapter / LINKS)
    merge(model, adapter)
    model.set_attn_implementation("eager")
    reader = Reader.load(str(folder / "base"), adapter=adapter)
    index = Index(folder / "index", reader)
    for n, text in enumerate(TEXTS):
        index.put(f"doc{n}", "", [(text, 0, len(text))], {})
    encoder = METHODS[row].encode
    assert encoder is not None
    list(index.encode(encoder))
    return Stage(Engine(reader, index), model.eval(), row, embeddings)


def place(parts: Sequence[tuple[str, Tensor]], *, composite: bool) -> Tensor:
    """RoPE positions, (tokens,): 0, 1, …; or every chunk where the first begins, and the rest behind the longest."""
    if not composite:
        return torch.arange(sum(len(part) for _, part in parts))
    sizes = {kind: [len(part) for name, part in parts if name == kind] for kind in ("system", "chunk", "question")}
    [first] = sizes["system"]
    chunks = [first + i for size in sizes["chunk"] for i in range(size)]
    end = first + max(sizes["chunk"])
    return torch.tensor([*range(first), *chunks, *range(end, end + sum(sizes["question"]))])


def sees(parts: Sequence[tuple[str, Tensor]]) -> Tensor:
    """(tokens, tokens) bool: a chunk's tokens see their own chunk up to themselves, all others whatever is in front."""
    owner = [number for number, (_, part) in enumerate(parts) for _ in range(len(part))]
    closed = {number for number, (kind, _) in enumerate(parts) if kind == "chunk"}
    rows = range(len(owner))
    return torch.tensor(
        [[key <= row and (owner[row] not in closed or owner[key] == owner[row]) for key in rows] for row in rows]
    )


@torch.no_grad()
def forward(model: Any, embedded: Tensor, positions: Tensor, mask: Tensor, past: Any = None) -> Any:
    """A stock forward with attentions and a cache; `mask` is (rows, keys) bool."""
    return model(
        inputs_embeds=embedded[None], position_ids=positions[None], use_cache=True, output_attentions=True,
        attention_mask=torch.where(mask, 0.0, float("-inf"))[None, None],
        **cache_argument(model, DynamicCache() if past is None else past),
    )  # fmt: skip


def derive(stage: Stage, texts: Sequence[str], share: float = 0.0) -> tuple[list[int], Tensor]:
    """Recomputed slots, ascending, and the first token's logits, (vocabulary,)."""
    parts = stage.parts(texts)
    positions = place(parts, composite=stage.row == "turborag-composite")
    embedded, mask = torch.cat([part for _, part in parts]), sees(parts)
    kept = DynamicCache()
    whole = forward(stage.model, embedded, positions, mask, kept)
    kinds = [kind for kind, part in parts for _ in range(len(part))]
    slots = torch.arange(len(kinds))
    chunks = torch.tensor([slot for slot, kind in enumerate(kinds) if kind == "chunk"])
    own = slice(len(kinds) - len(parts[-1][1]) - len(parts[-2][1]), len(kinds) - len(parts[-1][1]))
    scores = torch.stack([layer[0][:, own].mean((0, 1)) for layer in whole.attentions]).mean(0)
    order = scores[chunks].argsort(descending=True, stable=True)
    chosen = chunks[order[: round(share * len(chunks))]].sort().values
    if not len(chosen):
        return [], whole.logits[0, -1]
    anew = torch.isin(slots, chosen) | torch.tensor([kind in ("links", "question") for kind in kinds])
    stale, rows = slots[~anew], slots[anew]
    past = DynamicCache()
    for number, layer in enumerate(kept.layers):
        past.update(layer.keys[:, :, stale], layer.values[:, :, stale], number)
    keys = torch.cat([stale, rows])
    again = forward(stage.model, embedded[rows], positions[rows], keys[None] <= rows[:, None], past)
    return chosen.tolist(), again.logits[0, -1]


def check(stage: Stage, texts: Sequence[str], share: float = 0.0) -> Prefilled:
    ours = stage.prefill(texts, share)
    chosen, logits = derive(stage, texts, share)
    assert ours.recomputed.nonzero().squeeze(1).tolist() == chosen
    assert (ours.logits - logits).abs().max() <= CLOSE
    return ours


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize(("row", "links"), ROWS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_row_is_the_stock_model_under_the_mask_it_was_tuned_with(
    stages: Callable[..., Stage], architecture: str, row: str, links: int, order: Sequence[int]
) -> None:
    stage = stages(architecture, row, links)
    ours = check(stage, [TEXTS[number] for number in order])
    assert [chunk.cache for chunk in ours.report.chunks] == ["hit"] * len(order)
    assert ours.report.tokens.recomputed == 0
    context = ours.report.tokens.context
    assert ours.report.charged == pytest.approx(links * len(order) / context)


@pytest.mark.parametrize("share", [0.05, 0.4])
@pytest.mark.parametrize(("row", "links"), ROWS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_share_of_it_is_what_the_question_attends_to_read_again_in_its_place(
    stages: Callable[..., Stage], architecture: str, row: str, links: int, share: float
) -> None:
    ours = check(stages(architecture, row, links), TEXTS, share)
    assert 0 < ours.report.tokens.recomputed < ours.report.tokens.context


@pytest.mark.parametrize(("row", "links"), ROWS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_chunk_without_kv_is_read_alone_too(
    stages: Callable[..., Stage], architecture: str, row: str, links: int
) -> None:
    ours = check(stages(architecture, row, links), [TEXTS[2], UNCACHED, TEXTS[0]])
    assert [chunk.cache for chunk in ours.report.chunks] == ["hit", "miss", "hit"]


def test_mask_positions_and_link_tokens_each_make_a_difference(stages: Callable[..., Stage]) -> None:
    """Or agreeing with them would show nothing."""
    stage = stages("llama", "kvlink", 5)
    parts = stage.parts(TEXTS)
    embedded, mask = torch.cat([part for _, part in parts]), sees(parts)
    straight = torch.arange(len(embedded))
    moved = straight + torch.tensor([i for i, (_, part) in enumerate(parts) for _ in range(len(part))])
    last = embedded.clone()
    last[[i for i, kind in enumerate([k for k, p in parts for _ in range(len(p))]) if kind == "links"][-1]] = 0
    ways = [
        (embedded, straight, mask), (embedded, straight, torch.ones_like(mask).tril()), (embedded, moved, mask),
        (last, straight, mask),
    ]  # fmt: skip
    logits = [forward(stage.model, *way).logits[0, -1] for way in ways]
    assert all((one - other).abs().max() > 30 * CLOSE for one, other in permutations(logits, 2))
