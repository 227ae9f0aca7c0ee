"""Who may answer by a row that takes a tuned model, and what is said to everybody else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import byte_tokenizer, tiny_model, tiny_reader, tune, write_adapter
from safetensors.torch import save_file
from staged import QUESTION, TEXTS, make
from transformers import AutoModelForCausalLM

from ragcache.engine import stream
from ragcache.engine.chat import Message
from ragcache.engine.engine import Engine
from ragcache.errors import IndexMismatch, InvalidArgument, UntunedReader, UnusableAdapter
from ragcache.index.index import Index
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.model.tuning import LINKS, Tuning, write_tuning
from ragcache.rag import RagCache

pytestmark = pytest.mark.slow

TAKING = [name for name, row in METHODS.items() if row.finetuned]
SHORT = Sampling(max_new_tokens=4)


def plain_reader() -> Reader:
    reader = tiny_reader()
    reader.tuning, reader.links = None, None
    return reader


def finetuned(folder: Path, recipe: str, *, links: int = 0, documents: int = 4, **entries: Any) -> Path:
    """An adapter of the tiny Llama, as `ragcache finetune` leaves it."""
    adapter = write_adapter(folder, tiny_model("llama"), **entries)
    attention, positions = "independent", "composite" if recipe == "turborag-composite" else "reordered"
    write_tuning(adapter, Tuning(recipe, attention, positions, links, documents if links else 0, "tiny", 10))
    if links:
        made = torch.Generator().manual_seed(2)
        save_file({"links": torch.randn(documents, links, 64, generator=made)}, adapter / LINKS)
    return adapter


@pytest.mark.parametrize("name", TAKING)
def test_a_model_that_was_not_tuned_is_refused_with_what_tunes_it(name: str, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, plain_reader(), "naive")
    wanted = rf"method '{name}' takes a model tuned by the recipe '{name}', and tiny-llama was not tuned by any recipe"
    for ask in (engine.answer, engine.stream, engine.prefill):
        with pytest.raises(UntunedReader, match=rf"{wanted}; .*`ragcache finetune --recipe {name} …`.*--adapter"):
            ask(QUESTION, chunks, method=name)
    with pytest.raises(UntunedReader, match=wanted):
        engine.complete(TEXTS[0], method=name)
    engine.index.close()


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("recipe", ["full", *TAKING])
def test_a_row_takes_its_own_recipe_alone(name: str, recipe: str, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tune(tiny_reader(), recipe), "naive")
    if recipe == name:
        assert engine.answer(QUESTION, chunks, method=name, sampling=SHORT).report.method == name
    else:
        with pytest.raises(UntunedReader, match=rf"recipe '{name}', and tiny-llama was tuned by the recipe '{recipe}'"):
            engine.answer(QUESTION, chunks, method=name)
    engine.index.close()


def test_a_tuned_model_answers_by_every_row_that_takes_any(tmp_path: Path) -> None:
    rows = [name for name, row in METHODS.items() if row.finetuned is None]
    plain, chunks = make(tmp_path / "plain", plain_reader(), "naive", "auto", "prophetkv")
    with_links, others = make(tmp_path / "tuned", tune(tiny_reader(), "kvlink", links=5), "naive", "auto", "prophetkv")
    for name in ("full", "naive", "auto", "prophetkv"):
        assert name in rows
        before, after = (
            engine.prefill(QUESTION, of, method=name) for engine, of in ((plain, chunks), (with_links, others))
        )
        assert before.prompt.token_ids == after.prompt.token_ids
        assert torch.equal(before.logits, after.logits)
    plain.index.close()
    with_links.index.close()


def test_an_adapter_s_record_is_taken_up_with_it_and_from_a_merged_checkpoint(checkpoint: Path, tmp_path: Path) -> None:
    adapter = finetuned(tmp_path / "adapter", "kvlink", links=2)
    reader = Reader.load(str(checkpoint), adapter=adapter)
    assert reader.tuning == Tuning("kvlink", "independent", "reordered", 2, 4, "tiny", 10)
    assert reader.links is not None
    assert [reader.links.ids(place) for place in (0, 3)] == [(512, 513), (518, 519)]
    merged = tmp_path / "merged"
    reader.model.save_pretrained(merged)
    byte_tokenizer().save_pretrained(merged)
    assert Reader.load(str(merged)).tuning is None
    write_tuning(merged, reader.tuning)
    (merged / LINKS).write_bytes((adapter / LINKS).read_bytes())
    again = Reader.load(str(merged))
    assert again.tuning == reader.tuning
    assert again.links is not None
    assert again.links.digest == reader.links.digest


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_merged_at_load_or_by_peft_the_index_is_the_same(checkpoint: Path, tmp_path: Path) -> None:
    """The KV and its keys, though the fingerprints differ: one names the files, the other what memory holds."""
    peft = pytest.importorskip("peft")
    adapter = finetuned(tmp_path / "adapter", "kvlink", links=2)
    ours = Reader.load(str(checkpoint), adapter=adapter)
    merged = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(checkpoint), adapter
    ).merge_and_unload()
    theirs = Reader(merged, byte_tokenizer(), name="merged by PEFT")
    theirs.take_up_tuning(adapter)
    engine, chunks = make(tmp_path, ours, "kvlink")
    before = engine.prefill(QUESTION, chunks, method="kvlink")
    engine.index.close()
    assert ours.fingerprint != theirs.fingerprint
    assert ours.fingerprint_in_memory == theirs.fingerprint_in_memory
    with Index(tmp_path / "index", theirs) as index:
        after = Engine(theirs, index).prefill(QUESTION, index.chunks([one.id for one in chunks]), method="kvlink")
    assert [chunk.cache for chunk in after.report.chunks] == ["hit"] * len(chunks)
    assert torch.equal(before.logits, after.logits)


def test_an_index_of_the_base_is_refused_by_name_and_its_kv_is_a_miss_with_a_reason(
    checkpoint: Path, tmp_path: Path
) -> None:
    engine, chunks = make(tmp_path, Reader.load(str(checkpoint)), "naive")
    engine.index.close()
    tuned = Reader.load(str(checkpoint), adapter=finetuned(tmp_path / "adapter", "turborag"))
    with pytest.raises(
        IndexMismatch, match=rf"was made by {checkpoint} .*not by {checkpoint} with the adapter .*adapter"
    ):
        Index(tmp_path / "index", tuned)
    with Index(tmp_path / "index", Reader.load(str(checkpoint))) as index:  # as if somebody had renamed the model
        index.catalog.set_setting("fingerprint", tuned.fingerprint)
    with Index(tmp_path / "index", tuned) as index:
        report = (
            Engine(tuned, index).prefill(QUESTION, index.chunks([one.id for one in chunks]), method="turborag").report
        )
    assert {(one.cache, one.reason) for one in report.chunks} == {
        ("miss", "its KV was made by another model, or for other tokens")
    }


def test_more_chunks_than_there_are_link_tokens_for_are_refused(tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tune(tiny_reader(), "kvlink", links=1, documents=3), "kvlink")
    engine.answer(QUESTION, chunks[:3], method="kvlink", sampling=SHORT)
    with pytest.raises(InvalidArgument, match=r"more than 3 chunks.*--top-k 3 or fewer.*ragcache finetune"):
        engine.answer(QUESTION, chunks, method="kvlink")
    engine.index.close()


def test_link_tokens_that_are_missing_damaged_or_of_another_model_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    adapter = finetuned(tmp_path / "adapter", "kvlink", links=2)
    whole = (adapter / LINKS).read_bytes()
    for data in (whole[:-7], b""):
        (adapter / LINKS).write_bytes(data)
        with pytest.raises(UnusableAdapter, match=r"links\.safetensors is missing or damaged"):
            Reader.load(str(checkpoint), adapter=adapter)
    (adapter / LINKS).unlink()
    with pytest.raises(UnusableAdapter, match=r"links\.safetensors is missing or damaged"):
        Reader.load(str(checkpoint), adapter=adapter)
    save_file({"links": torch.zeros(4, 2, 32)}, adapter / LINKS)
    with pytest.raises(UnusableAdapter, match=r"shape \(4, 2, 32\).*take \(4, 2, 64\).*trained on tiny.*--model"):
        Reader.load(str(checkpoint), adapter=adapter)


def test_link_tokens_are_no_text_to_a_repetition_penalty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, chunks = make(tmp_path, tune(tiny_reader(), "kvlink", links=5), "kvlink")
    seen: list[list[int]] = []
    decode = stream.decode

    def watched(step: Any, logits: Any, prompt: Any, *rest: Any) -> Any:
        seen.append(prompt)
        return decode(step, logits, prompt, *rest)

    monkeypatch.setattr(stream, "decode", watched)
    sampling = Sampling(max_new_tokens=6, repetition_penalty=1.3)
    assert len(engine.answer(QUESTION, chunks, method="kvlink", sampling=sampling).token_ids) == 6
    assert seen == [list(engine.prefill(QUESTION, chunks, method="full").prompt.token_ids)]
    engine.index.close()


def test_a_later_turn_has_link_tokens_behind_its_chunks_and_leaves_their_kv_alone(tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, tune(tiny_reader(), "kvlink", links=3), "kvlink")
    before = engine.prefill(QUESTION, chunks, method="kvlink")
    turns = [Message("user", QUESTION), Message("assistant", "Green.")]
    later = engine.stream("Why?", chunks, method="kvlink", sampling=SHORT, history=turns)
    linked = [i for i, segment in enumerate(later.prompt.segments) if segment.link]
    assert [later.prompt.segments[i - 1].chunk for i in linked] == [chunk.id for chunk in chunks]
    assert later.prompt.segments[later.prompt.question].text.strip().endswith("Why?")
    assert [one.cache for one in later.answer.report.chunks] == ["hit"] * len(chunks)
    assert torch.equal(engine.prefill(QUESTION, chunks, method="kvlink").logits, before.logits)
    engine.index.close()


def test_a_command_asks_by_an_adapter_and_refuses_without_one(
    run: Callable[..., Any], documents: Path, checkpoint: Path, tmp_path: Path
) -> None:
    adapter = finetuned(tmp_path / "adapter", "turborag")
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    assert run("ingest", documents, "--index", base, "--model", checkpoint, "--method", "naive").exit_code == 0
    named = ("--model", checkpoint, "--adapter", adapter)
    assert run("ingest", documents, "--index", tuned, *named, "--method", "turborag").exit_code == 0
    ask = ("Who leads Tide?", "--method", "turborag", "--max-new-tokens", 2, "--json")
    answer = json.loads(run("ask", *ask, "--index", tuned).stdout)
    assert (answer["method"], answer["tokens"]["recomputed"]) == ("turborag", 0)
    assert {chunk["cache"] for chunk in answer["chunks"]} == {"hit"}
    for refused in (
        run("ask", *ask, "--index", base), run("chat", "--method", "turborag", "--index", base),
        run("ingest", "--method", "turborag", "--index", base),
        run("ask", "Who?", "--method", "kvlink", "--index", tuned),
    ):  # fmt: skip
        assert refused.exit_code == 2
        assert "ragcache finetune --recipe" in " ".join(refused.stderr.split())


def test_a_library_refuses_it_as_an_index_s_own_method(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(UntunedReader, match="not tuned by any recipe"):
        RagCache.open(tmp_path / "index", model=str(checkpoint), method="block-attention")
    assert not (tmp_path / "index").exists()


def test_doctor_says_how_a_model_was_tuned(run: Callable[..., Any], checkpoint: Path, tmp_path: Path) -> None:
    adapter = finetuned(tmp_path / "adapter", "kvlink", links=1, documents=6)
    found = json.loads(run("doctor", "--model", checkpoint, "--adapter", adapter, "--json").stdout)
    assert (found["tuning"]["recipe"], found["tuning"]["links"]) == ("kvlink", 1)
    assert found["full_recompute"]["passed"]
    assert found["ladder"][-1]["name"] == "as it was tuned, kvlink"
    assert "tuned by the recipe kvlink" in run("doctor", "--model", checkpoint, "--adapter", adapter).stdout


@pytest.mark.parametrize("recipe", [None, "turborag"])
def test_a_benchmark_leaves_out_what_the_reader_was_not_tuned_for(
    run: Callable[..., Any], tmp_path: Path, recipe: str | None
) -> None:
    folder, out = tmp_path / "model", tmp_path / "q.json"
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    more = ("--adapter", finetuned(tmp_path / "adapter", recipe)) if recipe else ()
    done = run(
        "bench", "quality", "--tasks", "sections", "--n", 1, "--methods", "turborag,kvlink", "--budgets", 0.3, "--out",
        out, "--max-new-tokens", 2, "--random-seeds", 1, "--model", folder, *more,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    content = json.loads(out.read_text())
    asked = {(row["method"], row["recompute"]) for row in content["rows"]}
    assert ({("turborag", 0.0), ("turborag", 0.3)} <= asked) == (recipe == "turborag")
    assert set(content["meta"]["untuned"]) == {"kvlink"} | (set() if recipe else {"turborag"})
    assert content["meta"].get("finetuned") == recipe
    assert "Left out: method 'kvlink' takes a model tuned by the recipe 'kvlink'" in " ".join(done.stderr.split())
    assert not {"block-attention", "turborag-composite"} & set(content["meta"]["absent"])
