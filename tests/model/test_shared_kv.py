"""Models whose last layers read the K and V of earlier ones (Gemma 4): less is stored, and every row works."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SIZES, byte_tokenizer
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from ragcache.engine.engine import Engine
from ragcache.errors import UnusableAdapter
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.cost import kv_bytes_per_token
from ragcache.model.links import LINKS, load_links
from ragcache.model.plan import ForwardPlan, Positions, Slots
from ragcache.model.reader import Reader
from ragcache.model.tuning import Tuning

WINDOW = 24
KINDS = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"] * 2
GEMMA4 = {
    "num_hidden_layers": 8, "layer_types": KINDS, "sliding_window": WINDOW, "num_kv_shared_layers": 3,
    "global_head_dim": 32, "vocab_size_per_layer_input": 512, "hidden_size_per_layer_input": 16,
    "use_bidirectional_attention": None,
}  # fmt: skip
#: Rows that score, prune, begin in the middle, look at deviation, or read attention in layers of either kind.
ROWS = ["random", "cacheblend", "cacheblend-gradual", "droidspeak", "psr", "prophetkv", "fusionrag", "cachecraft",
        "behind-document", "auto"]  # fmt: skip
IDS = torch.randint(8, 250, (60,), generator=torch.Generator().manual_seed(3)).tolist()
Asked = tuple[Engine, list[Chunk]]


@pytest.fixture(scope="module")
def reader() -> Reader:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma4_text", **{**SIZES, **GEMMA4}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim >= 2:
                parameter.normal_(0, 0.12)
    return Reader(model, byte_tokenizer())


@pytest.fixture(scope="module")
def asked(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with Index(tmp_path_factory.mktemp("index"), reader) as index:
        texts = ("The harbour master is Mara Voss. " * 2, "In 1931 the quarry was closed. " * 2)
        yield Engine(reader, index), [index.uncached_chunk(text) for text in texts]


def test_only_layers_that_make_k_and_v_are_stored(reader: Reader) -> None:
    kv = reader.encode(IDS)
    assert [tuple(layer.shape) for layer in kv.layers] == [(2, 2, 60, 32 if i % 2 else 16) for i in range(5)]
    assert [reader.readers_of(layer) for layer in range(5)] == [[0], [1], [2], [3, 5, 7], [4, 6]]
    assert reader.restartable == 4, "layer 3 must run, or layers 5 and 7 have nothing to read"


@pytest.mark.parametrize("method", ROWS)
def test_recomputing_everything_is_full_prefill_by_every_kind_of_row(method: str, asked: Asked) -> None:
    engine, chunks = asked
    full = engine.prefill("Who?", chunks, method="full")
    ours = engine.prefill("Who?", chunks, method=method, recompute=1.0)
    assert (ours.logits - full.logits).abs().max() <= 1e-4
    assert ours.report.recompute == 1.0
    some = engine.prefill("Who?", chunks, method=method, recompute=0.4)
    assert 0 < some.report.recompute < 0.6
    assert some.logits.isfinite().all()


def test_rows_that_leave_on_the_way_take_their_layer_s_own_embeddings_along(reader: Reader) -> None:
    stock, _ = reader.stock(IDS)
    slots, end = Slots(torch.arange(60)), 60
    buffer = reader.buffer(end)
    reader.forward(IDS, Positions(slots), buffer, ForwardPlan(slots, end))

    def prune(layer: int, rows: Slots) -> Any:
        return torch.arange(0, len(rows), 2) + (len(rows) + 1) % 2 if layer in (2, 6) else None

    again = reader.logits(IDS, Positions(slots), buffer, ForwardPlan(slots, end, prune=prune))
    assert (again - stock).abs().max() <= 1e-4


def test_bytes_are_known_from_the_configuration_alone(reader: Reader) -> None:
    assert (
        kv_bytes_per_token(reader.model.config, torch.float32)
        == reader.bytes_per_token
        == 2 * 2 * 4 * (3 * 16 + 2 * 32)
    )


def test_link_tokens_are_refused_since_no_layer_has_embeddings_for_them(reader: Reader, tmp_path: Path) -> None:
    save_file({"links": torch.zeros(2, 2, 64)}, tmp_path / LINKS)
    tuning = Tuning("kvlink", "independent", "reordered", 2, 2, "base", 1)
    with pytest.raises(UnusableAdapter, match="layers have embeddings of their own"):
        load_links(tmp_path, tuning, reader.model)


def test_every_row_s_logits_are_to_be_had(reader: Reader) -> None:
    slots = Slots(torch.arange(60))
    every = reader.logits(IDS, Positions(slots), reader.buffer(60), ForwardPlan(slots, 60), every=True)
    with torch.no_grad():
        wanted = reader.model(torch.tensor([IDS])).logits[0]
    assert (every - wanted).abs().max() <= 1e-4
