"""llama.cpp runs the same model: cold, restored and spliced against transformers and our naive reuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from ragcache_bench.contenders import Contender
from ragcache_bench.speed.peers import SameOrder
from ragcache_bench.speed.runners import Turn, shuffled
from ragcache_bench.speed.shapes import filled, question, random_reader, random_texts
from torch import Tensor

from ragcache.engine.engine import Engine
from ragcache.errors import UnsupportedModel
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.reader import Reader

pytest.importorskip("gguf")
pytest.importorskip("llama_cpp")

from ragcache_bench.speed.peers.gguf import write_gguf
from ragcache_bench.speed.peers.llama import LlamaCold, LlamaContext, LlamaRestored, LlamaSpliced, contexts

SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1024, "initializer_range": 0.1, "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
}  # fmt: skip


@pytest.fixture(scope="module", params=["qwen2", "qwen3"])
def reader(request: pytest.FixtureRequest) -> Reader:
    more = {"head_dim": 32} if request.param == "qwen3" else {}
    made = random_reader(request.param, {**SIZES, **more}, dtype=torch.float32, device="cpu")
    for name, parameter in made.model.named_parameters():
        if parameter.ndim == 1:  # zero biases and unit norms would hide a wrong name
            torch.nn.init.normal_(parameter, float("norm" in name), 0.2)
    return made


@pytest.fixture(scope="module")
def pair(reader: Reader) -> Iterator[tuple[LlamaContext, LlamaContext]]:
    with contexts(reader, "f32", 1024, threads=2) as both:
        yield both


@pytest.fixture
def turns(reader: Reader, tmp_path: Path) -> Iterator[tuple[Index, list[Turn]]]:
    with Index(tmp_path / "index", reader) as index:
        chunks = filled(index, [Contender(METHODS["naive"])], random_texts(3, 40), lambda *step: None)
        yield index, [Turn.of(index, question(index, seed), shuffled(chunks, seed)) for seed in range(3)]


def near(found: Tensor, expected: Tensor) -> bool:
    """Within what a KV cache in f16 and another order of sums allow."""
    return bool((found - expected).square().mean().sqrt() < 0.02 * expected.std())


def joined(turn: Turn) -> list[int]:
    return [token for part in turn.parts for token in part]


def test_cold_is_full_prefill(reader: Reader, pair: tuple[LlamaContext, LlamaContext], turns: tuple) -> None:  # type: ignore[type-arg]
    for turn in turns[1]:
        assert near(LlamaCold(pair[0]).first_token(turn.parts), reader.stock(joined(turn))[0])


def test_restored_is_full_prefill(reader: Reader, pair: tuple[LlamaContext, LlamaContext], turns: tuple) -> None:  # type: ignore[type-arg]
    peer = LlamaRestored(pair[1])
    for turn in turns[1]:
        assert near(peer.first_token(turn.parts), reader.stock(joined(turn))[0])
        peer.settle()


def test_in_the_same_order_nothing_but_the_question_is_run(
    pair: tuple[LlamaContext, LlamaContext],
    turns: tuple,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[type-arg]
) -> None:
    ran: list[int] = []
    forward = LlamaContext.forward
    monkeypatch.setattr(
        LlamaContext, "forward", lambda self, ids, *rest: ran.append(len(ids)) or forward(self, ids, *rest)
    )
    peer = SameOrder(LlamaRestored(pair[1]))
    for turn in turns[1]:
        peer.first_token(turn.parts)
        peer.settle()
    assert ran[0] == len(joined(turns[1][0]))
    assert all(count <= len(turns[1][0].parts[-1]) for count in ran[1:])


def test_spliced_is_naive_reuse(reader: Reader, pair: tuple[LlamaContext, LlamaContext], turns: tuple) -> None:  # type: ignore[type-arg]
    index, several = turns
    peer, engine = LlamaSpliced(pair[1]), Engine(reader, index)
    for turn in several:
        peer.ready(turn.parts)
        found = peer.first_token(turn.parts)
        assert near(found, engine.prefill(turn.question, turn.chunks, method="naive").logits)
        assert not near(found, reader.stock(joined(turn))[0])


def test_other_architectures_are_refused(tmp_path: Path) -> None:
    other = random_reader("llama", SIZES, dtype=torch.float32, device="cpu")
    with pytest.raises(UnsupportedModel, match="llama"):
        write_gguf(other.model, tmp_path / "model.gguf", "f32")


@pytest.mark.parametrize("precision", ["bf16", "q8_0"])
def test_narrower_weights_are_the_same_model(reader: Reader, turns: tuple, precision: str) -> None:  # type: ignore[type-arg]
    turn = turns[1][0]
    with contexts(reader, precision, 1024, threads=2) as (long, _):  # type: ignore[arg-type]
        found = LlamaCold(long).first_token(turn.parts)
    expected = reader.stock(joined(turn))[0]
    assert (found - expected).square().mean().sqrt() < 0.2 * expected.std()
    assert torch.corrcoef(torch.stack([found, expected]))[0, 1] > 0.98


def test_products_of_pytorchs_in_between_do_no_harm() -> None:
    """It releases a thread's tile registers, and llama.cpp does not look whether they are still set up."""
    sizes = {**SIZES, "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4}
    wide = random_reader("qwen2", sizes, dtype=torch.bfloat16, device="cpu")
    ids = list(range(3, 131))
    with contexts(wide, "q8_0", 256, threads=2) as (long, _):
        first = LlamaCold(long).first_token([ids])
        wide.stock(ids)
        assert torch.equal(LlamaCold(long).first_token([ids]), first)
