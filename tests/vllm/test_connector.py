"""vLLM answers from an index's KV as our own engine does, and what it did not compute never passes for computed."""

from typing import Any

import pytest
from vllm_asking import QUESTION, Chosen, distance, expected, generate, report

from ragcache.engine.engine import Engine
from ragcache.errors import IndexMismatch, UnusableIndex
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling

pytestmark = pytest.mark.vllm
TOKENS = 12


@pytest.mark.parametrize("method", ["naive", "auto"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_first_token_and_greedy_text_are_those_of_our_engine(
    llm: Any, engine: Engine, chunks: Chosen, method: str, seed: int
) -> None:
    chosen = chunks(seed, 6)
    ids, wanted = expected(engine, chosen, method)
    [first] = generate(llm, ids, ragcache=method)
    asked = sum(len(segment) for segment in engine.index.template.question(QUESTION))
    assert report(first)["loaded_tokens"] == len(ids) - asked
    assert (report(first)["chunks"], report(first)["misses"]) == (6, [])
    assert distance(first, wanted) < 1e-4
    [text] = generate(llm, ids, tokens=TOKENS, ragcache=method)
    ours = engine.answer(QUESTION, chosen, method=method, sampling=Sampling(max_new_tokens=TOKENS))
    assert text.outputs[0].text.strip() == ours.text.strip()


def test_reuse_is_not_full_prefill_or_these_tests_could_not_fail(llm: Any, engine: Engine, chunks: Chosen) -> None:
    ids, naive = expected(engine, chunks(3, 6), "naive")
    full = expected(engine, chunks(3, 6), "full")[1]
    assert float((naive - full).abs().max()) > 0.01
    [off] = generate(llm, ids, ragcache=False)
    assert distance(off, full) < 1e-4
    assert off.kv_transfer_params is None


def test_an_exact_request_never_meets_composed_kv(llm: Any, engine: Engine, chunks: Chosen) -> None:
    chosen = chunks(11, 6)
    ids, naive = expected(engine, chosen, "naive")
    full = expected(engine, chosen, "full")[1]
    assert distance(generate(llm, ids, ragcache="naive")[0], naive) < 1e-4
    [exact] = generate(llm, ids, ragcache=False)
    assert exact.num_cached_tokens == 0
    assert distance(exact, full) < 1e-4
    [again] = generate(llm, ids, ragcache=False)
    assert again.num_cached_tokens > 0  # its own blocks
    assert distance(again, full) < 1e-4
    assert distance(generate(llm, ids, ragcache="naive")[0], naive) < 1e-4  # nor composed ones exact KV


def test_equal_compositions_share_vllms_blocks_and_other_methods_do_not(
    llm: Any, engine: Engine, chunks: Chosen
) -> None:
    ids, naive = expected(engine, chunks(12, 6), "naive")
    auto = expected(engine, chunks(12, 6), "auto")[1]
    generate(llm, ids, ragcache="naive")
    [again] = generate(llm, ids, ragcache="naive")
    assert report(again)["loaded_tokens"] < 32  # the rest stands in vLLM's own blocks
    assert distance(again, naive) < 1e-4
    [other] = generate(llm, ids, ragcache="auto")
    assert report(other)["loaded_tokens"] > 32
    assert distance(other, auto) < 1e-4


@pytest.mark.parametrize("harm", ["flipped", "truncated", "gone after the look-up"])
def test_a_damaged_kv_is_computed_instead_and_said(
    llm: Any, engine: Engine, chunks: Chosen, file_of: Any, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = chunks(40 + len(harm), 5)
    ids, _ = expected(engine, chosen, "naive")
    full = expected(engine, chosen, "full")[1]
    file = file_of(chosen[2], "naive")
    content = file.read_bytes()
    try:
        if harm == "flipped":
            file.write_bytes(content[:-50] + bytes([content[-50] ^ 1]) + content[-49:])
        elif harm == "truncated":
            file.write_bytes(content[:-100])
        else:
            from vllm_ragcache.served_index import ServedIndex

            file.unlink()
            monkeypatch.setattr(ServedIndex, "_refusal", lambda self, key: "")
        [output] = generate(llm, ids, ragcache="naive")
        assert distance(output, full) < 1e-4
        assert report(output)["loaded_tokens"] == 0
        assert "unusable" in report(output)["misses"][-1]["reason"]
        monkeypatch.undo()
        [later] = generate(llm, [*ids[:-1], 5], ragcache="naive")
        assert report(later)["chunks"] == 4  # the damaged one is known, and the others serve
    finally:
        file.unlink(missing_ok=True)
        file.write_bytes(content)


def test_what_is_ingested_beside_it_is_found(llm: Any, engine: Engine, chunks: Chosen) -> None:
    text = "The lighthouse of Vell was built by Jon Arkwright in the year 1871, on the northern pier."
    engine.index.put("vell.md", "", [(text, 0, len(text))], {})
    list(engine.index.encode(METHODS["naive"].encode))
    chosen = [*chunks(15, 2), engine.chunk(text)]
    ids, naive = expected(engine, chosen, "naive")
    [output] = generate(llm, ids, ragcache="naive")
    assert (report(output)["chunks"], distance(output, naive) < 1e-4) == (3, True)
    engine.index.remove("vell.md")
    [output] = generate(llm, ids, ragcache="naive")
    assert report(output)["chunks"] == 2


def test_what_vllm_cannot_run_is_full_prefill_and_said(llm: Any, engine: Engine, chunks: Chosen) -> None:
    ids, full = expected(engine, chunks(16), "full")
    for asked in ({"method": "cacheclip"}, {"method": "ape"}, "nothing"):
        [output] = generate(llm, ids, ragcache=asked)
        assert report(output)["method"] == "full"
        assert (asked if isinstance(asked, str) else asked["method"]) in report(output)["refused"]
        assert distance(output, full) < 1e-4


def test_an_index_that_cannot_be_read_costs_the_load_and_not_the_server(
    llm: Any, engine: Engine, chunks: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm_ragcache.served_index import ServedIndex

    def locked(*given: Any) -> None:
        raise UnusableIndex("the catalogue cannot be opened now")

    ids, full = expected(engine, chunks(17), "full")
    monkeypatch.setattr(ServedIndex, "compose", locked)
    [output] = generate(llm, ids, ragcache="naive")
    assert "cannot be opened now" in report(output)["refused"]
    assert distance(output, full) < 1e-4


def test_another_model_than_the_indexs_does_not_start(index: Index, tmp_path: Any) -> None:
    from vllm.engine.arg_utils import EngineArgs
    from vllm_ragcache.launch import connector_config
    from vllm_ragcache.served_model import check_served_model

    from ragcache import bundled

    transfer = connector_config(index.path)
    same = EngineArgs(str(bundled.reader_path()), dtype="float32", kv_transfer_config=transfer).create_engine_config()
    check_served_model(index.catalog, index.path, same)
    other = EngineArgs(str(bundled.sibling_path()), dtype="float32", kv_transfer_config=transfer)
    with pytest.raises(IndexMismatch, match="weights"):
        check_served_model(index.catalog, index.path, other.create_engine_config())
    half = EngineArgs(str(bundled.reader_path()), dtype="bfloat16", kv_transfer_config=transfer)
    with pytest.raises(IndexMismatch, match=r"torch\.float32 in the index and torch\.bfloat16 served"):
        check_served_model(index.catalog, index.path, half.create_engine_config())
