"""Two derivations: what `inspect` reports against stock forwards that know nothing of buffers or plans."""

import base64
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import byte_tokenizer, tiny_model
from PIL import Image
from ragcache_bench.inspection import Inspection, by_layer, inspect
from ragcache_bench.pages.picture import draw_bands
from ragcache_bench.pages.pixels import png, shares
from ragcache_bench.pages.question import bands, html
from ragcache_bench.tasks import TASKS
from ragcache_cli.main import app
from staged import QUESTION, make
from torch import Tensor
from twin import stale_kv
from typer.testing import CliRunner, Result

from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument, PromptTooLong
from ragcache.index.chunks import Chunk
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt
from ragcache.rag import RagCache

pytestmark = pytest.mark.slow

SHORT = Sampling(max_new_tokens=3)


@pytest.fixture(scope="module", params=["llama", "qwen2-hybrid"])
def stage(request: pytest.FixtureRequest, readers: Callable[[str], Reader], tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("inspected")
    engine, chunks = make(place, readers(request.param), "naive", "prophetkv", "fusionrag")
    others = [("epic", 0.3), ("naive", None), ("fusionrag", 0.3)]
    seen = inspect(engine.reader, engine.index, QUESTION, chunks, "prophetkv", 0.3, others=others, sampling=SHORT)
    return engine, chunks, seen


Stage = tuple[Engine, list[Chunk], Inspection]


def prompt_of(engine: Engine, chunks: list[Chunk]) -> Prompt:
    return engine.prefill(QUESTION, chunks, method="naive").prompt


@torch.no_grad()
def stock_kv(reader: Reader, prompt: Prompt) -> list[tuple[Tensor, Tensor]]:
    cache = reader.stock(prompt.token_ids)[1]
    return [(layer.keys, layer.values) for layer in cache.layers]


def moved(ours: Tensor, full: Tensor) -> Tensor:
    return (ours - full)[0].pow(2).sum(-1).mean(0)


def test_naive_deviation_is_the_distance_between_two_stock_forwards(
    readers: Callable[[str], Reader], tmp_path: Path
) -> None:
    reader = readers("llama")  # a hybrid's stock cache forgets what its windows have passed
    engine, chunks = make(tmp_path, reader, "naive")
    seen = inspect(reader, engine.index, QUESTION, chunks, "naive", sampling=SHORT)
    prompt = prompt_of(engine, chunks)
    full = stock_kv(reader, prompt)
    for segment in prompt.chunks():
        first, last = prompt.slots[segment : segment + 2]
        stale = stale_kv(reader, prompt.segments[segment].token_ids, (), first)
        for layer in range(reader.layers):
            keys = moved(stale[layer][0], full[layer][0][:, :, first:last])
            values = moved(stale[layer][1], full[layer][1][:, :, first:last])
            assert torch.allclose(seen.naive.key[layer, first:last], keys, rtol=1e-3, atol=1e-4)
            assert torch.allclose(seen.naive.value[layer, first:last], values, rtol=1e-3, atol=1e-4)
            norms = full[layer][0][0, :, first:last].pow(2).sum(-1).mean(0)
            assert torch.allclose(seen.full.key[layer, first:last], norms, rtol=1e-4)
    assert seen.naive.key[1:].sum() > 1
    assert torch.equal(seen.naive.key, seen.recomputed_kv.key)


def test_keys_of_the_first_layer_never_deviate(stage: Stage) -> None:
    _, _, seen = stage
    assert seen.naive.key[0].max() < 1e-6 < seen.naive.key[1:].max()


def test_attention_is_what_stock_eager_attention_gives(readers: Callable[[str], Reader], tmp_path: Path) -> None:
    reader = readers("llama")
    engine, chunks = make(tmp_path, reader, "naive")
    seen = inspect(reader, engine.index, QUESTION, chunks, "naive", sampling=SHORT)
    prompt = prompt_of(engine, chunks)
    with torch.no_grad(), reader._attention.use("eager"):
        stock = reader.model(input_ids=torch.tensor([prompt.token_ids]), output_attentions=True).attentions
    for layer, wanted in enumerate(stock):
        rows = wanted[0].mean(0)[seen.asked.start : seen.asked.stop, : seen.chunks[-1].stop]
        assert torch.allclose(seen.attention_full[layer], rows, atol=1e-5)
    assert not torch.allclose(seen.attention_reused, seen.attention_full, atol=1e-3)


def test_what_is_recomputed_in_full_deviates_nowhere_and_looks_the_same(stage: Stage) -> None:
    engine, chunks, _ = stage
    seen = inspect(engine.reader, engine.index, QUESTION, chunks, "prophetkv", 1.0, sampling=SHORT)
    assert seen.recomputed_kv.key.max() < 1e-6
    assert seen.recomputed_kv.value.max() < 1e-6
    assert torch.allclose(seen.attention_reused, seen.attention_full, atol=1e-5)
    assert seen.choices[0].answer == seen.full_answer
    assert all(layer["covered"] in (0, pytest.approx(1)) for layer in by_layer(seen))


def test_selected_slots_are_those_the_engine_recomputes(stage: Stage) -> None:
    engine, chunks, seen = stage
    assert [choice.method for choice in seen.choices] == ["prophetkv", "epic", "naive", "fusionrag"]
    for choice in seen.choices:
        answer = engine.answer(QUESTION, chunks, method=choice.method, recompute=choice.recompute, sampling=SHORT)
        assert int(choice.selected.sum()) == answer.report.tokens.recomputed
        assert (choice.answer, choice.charged) == (answer.text, answer.report.charged)
        for chunk, report in zip(seen.chunks, answer.report.chunks, strict=True):
            assert int(choice.selected[chunk.start : chunk.stop].sum()) == report.recomputed
    assert not seen.choices[2].selected.any()


def test_a_recomputed_token_deviates_less_in_the_layer_above_than_a_stale_one_did(stage: Stage) -> None:
    _, _, seen = stage
    chosen = seen.choices[0].selected[: seen.naive.key.shape[1]]
    assert seen.recomputed_kv.key[1, chosen].sum() < seen.naive.key[1, chosen].sum()
    stale = ~chosen
    assert torch.allclose(seen.recomputed_kv.key[:, stale], seen.naive.key[:, stale], atol=1e-6)


def test_tokens_join_to_the_text_and_chunks_name_their_slots(stage: Stage) -> None:
    engine, chunks, seen = stage
    prompt = prompt_of(engine, chunks)
    assert len(seen.tokens) == len(prompt)
    for span, chunk in zip(seen.chunks, chunks, strict=True):
        assert "".join(seen.tokens[span.start : span.stop]).strip() == chunk.text
    assert QUESTION in "".join(seen.tokens[seen.asked.start : seen.asked.stop])
    assert seen.naive.key.shape == (engine.reader.layers, seen.chunks[-1].stop)
    assert seen.attention_full.shape == (engine.reader.layers, len(seen.asked), seen.chunks[-1].stop)


def test_a_character_of_several_tokens_stands_with_the_last(readers: Callable[[str], Reader], tmp_path: Path) -> None:
    reader = readers("llama")
    engine, _ = make(tmp_path, reader)
    seen = inspect(reader, engine.index, "Où ?", [engine.index.uncached_chunk("élan")], "naive", sampling=SHORT)
    assert seen.tokens[seen.chunks[0].start :][:3] == ("", "é", "l")


def test_figures_by_layer_are_shares(stage: Stage) -> None:
    engine, _, seen = stage
    layers = by_layer(seen)
    assert len(layers) == engine.reader.layers
    deep = layers[2]
    slots = [slot for chunk in seen.chunks for slot in chunk]
    heads = [slot for chunk in seen.chunks for slot in list(chunk)[:4]]
    assert deep["heads"] == pytest.approx(float(seen.naive.key[2, heads].sum() / seen.naive.key[2, slots].sum()))
    assert deep["key_naive"] == pytest.approx(float(seen.naive.key[2, slots].sum() / seen.full.key[2, slots].sum()))
    assert 0 < deep["attention"] < 1
    assert layers[0]["key_naive"] == pytest.approx(0, abs=1e-6)


def test_what_cannot_be_inspected_is_refused(stage: Stage) -> None:
    engine, chunks, _ = stage
    reader, index = engine.reader, engine.index
    with pytest.raises(InvalidArgument, match="'full' reuses no KV"):
        inspect(reader, index, QUESTION, chunks, "full")
    with pytest.raises(InvalidArgument, match="'full' reuses no KV"):
        inspect(reader, index, QUESTION, chunks, "naive", others=[("full", None)])
    with pytest.raises(InvalidArgument, match="blank"):
        inspect(reader, index, " ", chunks, "naive")
    with pytest.raises(PromptTooLong):
        inspect(reader, index, QUESTION * 200, chunks, "naive")


def test_a_look_leaves_no_encoding_behind(reader: Reader, tmp_path: Path) -> None:
    engine, chunks = make(tmp_path, reader, "link0")
    before = engine.index.catalog.stats()["encodings"]
    seen = inspect(reader, engine.index, QUESTION, chunks, "link0", sampling=SHORT)
    assert seen.naive.key[1].sum() > 0
    assert not torch.equal(seen.naive.key, seen.recomputed_kv.key)
    assert engine.index.catalog.stats()["encodings"] == before


def test_the_page_shows_every_token_of_the_chunks_and_quotes_nothing_raw(reader: Reader, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>\"'&"
    engine, _ = make(tmp_path, reader)
    chunks = [engine.index.uncached_chunk(text) for text in ("A quiet one.", evil)]
    seen = inspect(reader, engine.index, f"Why {evil}?", chunks, "epic", 0.3, sampling=SHORT)
    text = html(seen, {"command": evil, "answers": [evil]}, sources=[evil, ""], gold=[0])
    assert "alert(1)</script>" not in text.replace("&lt;/script&gt;", "")
    tokens = sum(len(span) for span in seen.chunks)
    assert text.count('<span class="t') == tokens
    assert text.count('<span class="t sel"') == int(seen.choices[0].selected.sum())
    assert text.count("holds the answer") == 1
    codes = json.loads(re.search(r'id="heat">(.*?)</script>', text)[1])  # type: ignore[index]
    assert list(codes) == ["key", "key-left", "value", "value-left"]
    assert {(len(rows), len(row)) for rows in codes.values() for row in rows} == {(1 + reader.layers, tokens)}
    assert set(re.findall(r'(?:src|href)="([^":]*:)', text)) == {"data:"}


def test_bands_have_a_column_per_token_and_a_row_per_layer_or_method(stage: Stage, tmp_path: Path) -> None:
    engine, _, seen = stage
    found = bands(seen)
    assert {band.values.shape[1] for band in found} == {seen.chunks[-1].stop}
    assert [len(band.names) for band in found] == [len(seen.choices)] + [engine.reader.layers] * 5
    assert all(len(band.names) == band.values.shape[0] for band in found)
    assert all(0 <= band.values.min() <= band.values.max() <= 1 for band in found)
    draw_bands(tmp_path / "b.png", found, seen.chunks)
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_pixels_are_as_opaque_as_values_are_large() -> None:
    values = torch.tensor([[0.0, 0.5, 1.0], [1.0, 0.0, 0.2]])
    picture = Image.open(io.BytesIO(base64.b64decode(png(values, (10, 20, 30)).partition(",")[2])))
    assert picture.size == (3, 2)
    pixels = np.asarray(picture)  # (rows, columns, RGBA)
    assert pixels[..., 3].tolist() == [[0, 128, 255], [255, 0, 51]]
    assert (pixels[..., :3] == (10, 20, 30)).all()


def test_shares_are_of_the_scale_and_rounding_errors_stay_dark() -> None:
    values = torch.tensor([[0.0, 1.0, 4.0], [0.0, 1e-9, 2e-9]])
    found = shares(values, torch.full((2, 5), 2.0) * torch.tensor([[1.0], [1e-9]]), torch.tensor([0.5, 0.5]))
    assert found[0].tolist() == [0.0, 0.5, 1.0]
    assert found[1].max() < 1e-6
    assert shares(values, torch.full((1, 5), 8.0))[0].tolist() == [0.0, 0.125, 0.5]
    assert shares(values, values * 0).isfinite().all()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_model("llama", max_position_embeddings=8192).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def run(*options: object) -> Result:
    return CliRunner().invoke(app, ["bench", "inspect", *map(str, options)])


def test_inspect_a_question_of_a_task(checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "page.html"
    shown = run("--task", "sections", "--number", 1, "--pool", 1, "--model", checkpoint, "--others", "epic,naive",
                "--recompute", 0.1, "--max-new-tokens", 2, "--out", out, "--json")  # fmt: skip
    assert shown.exit_code == 0, shown.output
    content = json.loads(shown.stdout)
    assert [(one["method"], one["recompute"]) for one in content["choices"]] == [
        ("prophetkv", 0.1), ("epic", 0.1), ("naive", None)
    ]  # fmt: skip
    example = TASKS["sections"].examples(2)[1]
    assert (content["question"], content["meta"]["answers"]) == (example.question, list(example.answers))
    assert len(content["layers"]) == 4
    assert {file.name for file in out.parent.iterdir()} == {"page.html", "page.png"}
    assert out.read_text().count('class="chunk') == len(example.chunks)


def test_inspect_a_question_of_ones_own_index(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in {"a": "The Tide project is led by Mara Voss.", "b": "The mill grinds rye."}.items():
        (folder / f"{name}.txt").write_text(text)
    with RagCache.open(tmp_path / "index", model=str(checkpoint)) as rag:
        rag.ingest(folder, methods=["naive"])
    options = ["--index", tmp_path / "index", "--max-new-tokens", 2, "--out", tmp_path / "page.html"]
    shown = run("Who leads the Tide project?", "--method", "prophetkv", *options)
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "page.html").read_text()
    assert "a.txt" in text
    assert "cacheblend 0.2" in text
    assert "fusionrag" not in shown.stdout  # the index holds no KV for it
    assert run("Who?", "--method", "naive", "--others", "fusionrag", *options).exit_code == 2


def test_inspect_a_default_index_by_its_own_method_and_by_another_as_the_error_advises(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder, index = tmp_path / "documents", tmp_path / "index"
    folder.mkdir()
    for name, text in {"a": "The Tide project is led by Mara Voss.", "b": "The mill grinds rye."}.items():
        (folder / f"{name}.txt").write_text(text)
    with RagCache.open(index, model=str(checkpoint)) as rag:
        rag.ingest(folder)
    options = ["--index", index, "--max-new-tokens", 2, "--out", tmp_path / "page.html"]
    shown = run("Who leads the Tide project?", *options, "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert [(one["method"], one["recompute"]) for one in found["choices"]] == [
        ("auto", 0.05),
        ("in-document", 0.05),
        ("behind-document", 0.05),
    ]
    assert found["layers"][2]["key_naive"] > 0
    assert run("Who leads the Tide project?", *options, "--recompute", 0.5).exit_code == 0
    refused = run("Who leads the Tide project?", "--method", "prophetkv", *options)
    assert refused.exit_code == 2
    (command,) = re.findall("run `ragcache (.*?)`", refused.stderr)
    assert CliRunner().invoke(app, shlex.split(command)).exit_code == 0
    assert run("Who leads the Tide project?", "--method", "prophetkv", *options).exit_code == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "--task"),
        (["Who?", "--task", "sections"], "--task"),
        (["--task", "alchemy"], "alchemy"),
        (["--task", "corpus-section", "--number", "100000"], "--number"),
        (["--task", "sections", "--method", "full"], "reuses no KV"),
        (["--task", "sections", "--recompute", "2"], "between 0 and 1"),
        (["Who?", "--index", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_looked_at_is_one_sentence_and_exit_code_2(options: list[str], reason: str) -> None:
    failed = run(*options)
    assert failed.exit_code == 2
    assert reason in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
