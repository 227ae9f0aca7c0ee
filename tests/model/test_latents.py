"""Latent attention (MLA): latents are stored as the model caches them, only what stands beside them turns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SIZES, byte_tokenizer
from staged import QUESTION, make
from torch import Tensor
from transformers import AutoConfig
from twin import twin_logits

from ragcache.encode import Alone
from ragcache.encode.fused import value_shift
from ragcache.engine.engine import Engine
from ragcache.errors import UnsupportedModel
from ragcache.index.chunks import Chunk
from ragcache.index.settings import KV_FORM, bytes_of_form
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model import behaviour, compatibility
from ragcache.model.cost import kv_bytes_per_token
from ragcache.model.decode import Sampling
from ragcache.model.prefill_context import PrefillContext
from ragcache.model.reader import Reader
from ragcache.model.reduced import build_reduced, reduce_config
from ragcache.select import Selector
from ragcache.store import CODECS
from ragcache.store.blob import Blob, pack, unpack

LATENT, TURNING = 32, 8
MLA = {
    "kv_lora_rank": LATENT, "q_lora_rank": 24, "qk_rope_head_dim": TURNING, "qk_nope_head_dim": 16, "v_head_dim": 12,
    "num_key_value_heads": 4, "moe_intermediate_size": 32, "n_routed_experts": 4, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 2,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 512, "mscale": 1.0,
    "mscale_all_dim": 1.0,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {"deepseek_v3": {"rope_parameters": YARN}, "deepseek_v2": {}, "glm4_moe_lite": {}}
#: Rows that move, fuse, score, prune, begin in the middle, or look at deviation.
ROWS = ["naive", "fusionrag", "cacheblend", "cacheblend-gradual", "droidspeak", "prophetkv", "auto"]
IDS = torch.randint(8, 250, (60,), generator=torch.Generator().manual_seed(3)).tolist()
Asked = tuple[Engine, list[Chunk]]


@dataclass(frozen=True)
class Marked(Selector):
    """Recomputes the tokens whose id five divides: a set that the twin can name too."""

    def scores(self, p: PrefillContext) -> Tensor:
        return torch.where(p.token_ids % 5 == 0, float("inf"), float("-inf"))


def latent_reader(kind: str, **changes: Any) -> Reader:
    """A reader of a tiny random model; head_dim is what the class makes of it."""
    sizes = {name: value for name, value in SIZES.items() if name != "head_dim"}
    config = AutoConfig.for_model(kind, **{**sizes, **MLA, **KINDS[kind], **changes})
    return Reader(build_reduced(config), byte_tokenizer(), name=kind)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return latent_reader("deepseek_v3")


@pytest.fixture(scope="module")
def asked(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    engine, chunks = make(tmp_path_factory.mktemp("latents"), reader, *ROWS)
    yield engine, chunks
    engine.index.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_is_the_model_s_own_cache_and_the_latents_stay_as_they_are(kind: str) -> None:
    reader = latent_reader(kind)
    kv = reader.encode(IDS)
    assert {tuple(layer.shape) for layer in kv.layers} == {(1, 1, 60, LATENT + TURNING)}
    assert {(one.offset, 2 * len(one.inv_freq)) for one in reader.rotator.layouts} == {(LATENT, TURNING)}
    buffer = reader.buffer(100)
    reader.place(buffer, kv, 0, 37)
    _, cache = reader.stock([9] * 37 + IDS)  # what the first layer caches knows nothing of other tokens
    held, own = buffer.read(0, 60)[0][0, 0], cache.layers[0]
    assert torch.equal(held[:, :LATENT], kv.layers[0][0, 0, :, :LATENT])
    assert (held - torch.cat([own.keys, own.values], 3)[0, 0, 37:]).abs().max() < 1e-5
    assert (held - kv.layers[0][0, 0])[:, LATENT:].abs().max() > 0.1


def test_bytes_are_those_of_latents_and_known_from_the_configuration_alone(reader: Reader) -> None:
    config = reader.model.config
    assert kv_bytes_per_token(config, torch.float32) == reader.bytes_per_token == 4 * 4 * (LATENT + TURNING)
    published = AutoConfig.for_model("deepseek_v3")
    expanded = published.num_attention_heads * (published.qk_head_dim + published.v_head_dim)
    assert kv_bytes_per_token(published, torch.bfloat16) == 61 * (512 + 64) * 2
    assert expanded / (512 + 64) > 70, "expanded, K and V of all heads would take so many times as much"


@pytest.mark.parametrize("kind", KINDS)
def test_any_order_with_any_holes_is_stock_attention_on_kv_put_together_by_hand(kind: str, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, latent_reader(kind), "naive")
    loose = [engine.index.uncached_chunk(chunk.text) for chunk in chunks]
    row = Method("marked", Alone(), Marked(), 0.0)
    orders = [*permutations(range(3))] if kind == "deepseek_v3" else [(2, 0, 1)]
    for order, mask in product(orders, product((True, False), repeat=3)):
        given = [chunks[i] if hit else loose[i] for i, hit in zip(order, mask, strict=True)]
        ready = engine.prefill(QUESTION, given, method=row, recompute=1e-9)
        prompt = ready.prompt
        recomputed = torch.tensor(prompt.token_ids) % 5 == 0
        recomputed[: prompt.slots[1]] = recomputed[prompt.slots[prompt.chunks()[-1] + 1] :] = False
        assert int(recomputed.sum()) == ready.report.tokens.recomputed
        assert [chunk.cache for chunk in ready.report.chunks] == ["hit" if hit else "miss" for hit in mask]
        lefts = dict.fromkeys([0, *prompt.chunks()], ())  # a miss is made at once, as it would be at ingestion
        wanted = twin_logits(engine.reader, prompt, lefts, recomputed)
        assert (ready.logits - wanted).abs().max() <= 1e-4, (order, mask)
    engine.index.close()


@pytest.mark.parametrize("method", ROWS)
def test_every_kind_of_row_recomputes_some_and_recomputing_everything_is_full_prefill(
    method: str, asked: Asked
) -> None:
    engine, chunks = asked
    if METHODS[method].recompute is not None:
        full = engine.prefill(QUESTION, chunks, method="full")
        ours = engine.prefill(QUESTION, chunks, method=method, recompute=1.0)
        assert (ours.logits - full.logits).abs().max() <= 1e-4
        some = engine.prefill(QUESTION, chunks, method=method, recompute=0.4)
        assert 0 < some.report.recompute < 0.6
    answer = engine.answer(QUESTION, chunks[::-1], method=method, sampling=Sampling(max_new_tokens=6))
    assert answer.report.cached == len(chunks)


def test_the_greedy_answer_is_the_same_text(asked: Asked) -> None:
    engine, chunks = asked
    sampling = Sampling(max_new_tokens=24)
    full = engine.answer(QUESTION, chunks, method="full", sampling=sampling)
    assert engine.answer(QUESTION, chunks, method="auto", recompute=1.0, sampling=sampling).token_ids == full.token_ids


def test_requests_that_run_together_answer_as_they_do_alone(asked: Asked) -> None:
    engine, chunks = asked

    def answer(count: int, method: str) -> Any:
        stream = engine.stream(QUESTION, chunks[:count], method=method, sampling=Sampling(max_new_tokens=2 + count))
        return stream.answer.token_ids, stream.logits

    todo = [partial(answer, count, method) for count in (1, 3, 4) for method in ("naive", "prophetkv", "cacheblend")]
    alone = [one() for one in todo]
    for (tokens, logits), (own, before) in zip(engine.reader.run_batch(todo), alone, strict=True):
        assert tokens == own
        assert (logits - before).abs().max() <= 1e-4


def test_a_forward_is_charged_for_the_latents_in_front_of_it(reader: Reader) -> None:
    few, many = torch.tensor([9]), torch.arange(10)
    dims, per_token = reader.dims, LATENT * 4 * (16 + 12)
    assert dims.expansion == per_token
    assert dims.attention == 4 * (16 + TURNING + 12) // 2
    plain = 2 * dims.linear + 4 * dims.attention * 10
    assert dims.forward(few, [0], logits=False) == plain + 2 * 9 * per_token
    assert dims.forward(many, [0], logits=False) == 10 * 2 * dims.linear + 4 * dims.attention * 55


@pytest.mark.parametrize("codec", CODECS)
def test_latents_are_written_and_read_in_every_codec(codec: str, reader: Reader) -> None:
    kv, form = reader.encode(IDS), CODECS[codec]
    parts = form.encode(kv.layers[0])
    assert sum(part.nbytes for part in parts.values()) == form.nbytes(1, 60, LATENT + TURNING, 4, 1)
    file = bytearray(b"".join(pack(Blob("k", kv.token_ids, 0, kv.layers), form)))
    read, buffer = unpack(torch.frombuffer(file, dtype=torch.uint8), "k"), reader.buffer(60)
    reader.place(buffer, replace(kv, layers=read.layers), 0, 0)
    for held, layer in zip(buffer.read(0, 60), kv.layers, strict=True):
        assert (held - layer).norm() / layer.norm() <= {"raw": 0, "bf16": 4e-3}.get(codec, 1e-2)


def test_an_index_of_latents_knows_its_bytes(asked: Asked, reader: Reader) -> None:
    form = asked[0].index.catalog.setting(KV_FORM)
    assert form == [[1, LATENT + TURNING, 4, 1]] * 4
    assert bytes_of_form(form, CODECS["raw"], 60) == 60 * reader.bytes_per_token
    assert bytes_of_form(form, CODECS["k8v4"], 60) == bytes_of_form(form, CODECS["int8"], 60)


def test_what_fusion_moves_is_asked_of_the_latents_and_not_of_what_turns(reader: Reader) -> None:
    kv, buffer = reader.encode(IDS), reader.buffer(60)
    reader.place(buffer, kv, 0, 37)
    elsewhere = replace(kv, layers=buffer.read(0, 60), start=37)
    assert value_shift(kv, elsewhere, reader.rotator.layouts).max() == 0
    assert value_shift(kv, reader.encode(IDS[::-1]), reader.rotator.layouts).min() > 0


# -- broken on purpose ----------------------------------------------------------------------------------------------
def test_latents_that_turn_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader._probe

    def from_the_first_dimension_on(reader: Reader) -> Any:
        return [replace(one, offset=0) for one in found(reader)]

    monkeypatch.setattr(Reader, "_probe", from_the_first_dimension_on)
    with pytest.raises(UnsupportedModel, match=r"logits after \d+ tokens with a reused chunk are [\d.e-]+ off"):
        latent_reader("deepseek_v3")


def test_requests_whose_latents_are_mixed_up_are_seen(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcache.model.batching import BatchBuffer

    parts = BatchBuffer.parts
    monkeypatch.setattr(BatchBuffer, "parts", lambda *given: [(a, c, c, d) for a, c, _, d in parts(*given)])
    with pytest.raises((AssertionError, RuntimeError)):
        test_requests_that_run_together_answer_as_they_do_alone(asked)


def test_an_indexer_s_own_keys_are_a_refusal_by_name() -> None:
    with pytest.raises(UnsupportedModel, match=r"an indexer chooses what its attention sees \(DSA\)"):
        compatibility.check_config(build_reduced(reduce_config(AutoConfig.for_model("deepseek_v32"))))


def test_keys_and_values_of_different_widths_stand_side_by_side() -> None:
    reader = Reader(build_reduced(reduce_config(AutoConfig.for_model("mimo_v2_flash"))), byte_tokenizer())
    width = reader.model.config.head_dim + reader.model.config.v_head_dim
    assert {layer.shape[3] for layer in reader.encode(IDS).layers} == {width}
    behaviour.compare_whole(reader)
