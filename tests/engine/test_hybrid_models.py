"""Models whose layers carry a state: any order and any hole equals the stock layers run one chunk after the other."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import tiny_reader
from faults.small import Letters, write_pages
from ragcache_bench import doctor
from ragcache_bench.spliced_cache import SplicedCache

from ragcache import RagCache
from ragcache.engine.engine import Engine
from ragcache.engine.prefill import Prefilled
from ragcache.errors import UnsupportedModel
from ragcache.index.chunking import Chunking
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.layout import Retrieved
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader
from ragcache.prompt import Prompt, Segment, Template

TEXTS = ("alpha one", "beta two two", "ga", "delta four four four")
QUESTION = "which?"


@dataclass(frozen=True)
class Spaced(Retrieved):
    """Fresh text between the chunks."""

    def place(self, template: Template, prefix: Segment, chunks: list[Segment], question: str, look: object) -> Prompt:
        between = Segment(template.plain(" -- "), " -- ")
        return template.prompt([part for one in chunks for part in (one, between)], question, prefix=prefix)


@pytest.fixture(scope="module", params=["qwen3-next", "lfm2"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine over one document of four chunks."""
    with Index(tmp_path_factory.mktemp("hybrid") / "index", tiny_reader(request.param)) as index:
        ingest(index)
        yield Engine(index.reader, index)


def ingest(index: Index, methods: Sequence[str] = ("naive", "auto", "prefix")) -> None:
    text, ends = "".join(TEXTS), list(itertools.accumulate(map(len, TEXTS), initial=0))
    index.put("doc", text, [(one, *span) for one, span in zip(TEXTS, itertools.pairwise(ends), strict=True)], {})
    for name in methods:
        list(index.encode(METHODS[name].encode))


def known(engine: Engine) -> list[Chunk]:
    rows = sorted(engine.index.catalog.all_chunks(), key=lambda row: row.ordinal)
    return list(engine.index.chunks([row.id for row in rows]))


def spliced(reader: Reader, ready: Prefilled, left: Sequence[int] = ()) -> SplicedCache:
    """The prompt put together by hand: chunks behind `left`, all else read where it stands, but the last token."""
    prompt, cache = ready.prompt, SplicedCache(reader.model)
    states = dict(zip(prompt.chunks(), (chunk.cache for chunk in ready.report.chunks), strict=True))
    for number, segment in enumerate(prompt.segments):
        at = prompt.slots[number]
        ids = segment.token_ids[:-1] if number == len(prompt.segments) - 1 else segment.token_ids
        if ids and states.get(number, "exact") == "exact":
            cache.read(ids, at)
        elif ids:
            cache.place(ids, at, left)
    return cache


def off(engine: Engine, ready: Prefilled, left: Sequence[int] = ()) -> float:
    last = len(ready.prompt) - 1
    expected = spliced(engine.reader, ready, left).read([ready.prompt.token_ids[last]], last)
    return float((ready.logits - expected).abs().max())


@pytest.mark.parametrize("missing", [(), (0,), (1, 2), (0, 1, 2)])
def test_every_order_and_every_hole_is_what_the_stock_layers_make_of_it(
    stage: Engine, missing: tuple[int, ...]
) -> None:
    chunks = known(stage)
    given = [stage.index.uncached_chunk(TEXTS[n]) if n in missing else chunks[n] for n in range(3)]
    for order in itertools.permutations(range(3)):
        ready = stage.prefill(QUESTION, [given[n] for n in order], method="naive")
        assert off(stage, ready) <= 1e-4
        assert [one.cache == "miss" for one in ready.report.chunks] == [n in missing for n in order]


def test_text_between_chunks_is_read_behind_the_state_at_its_place(stage: Engine) -> None:
    row = replace(METHODS["naive"], name="spaced", layout=Spaced())
    for order in itertools.permutations(known(stage)[1:], 2):
        assert off(stage, stage.prefill(QUESTION, order, method=row)) <= 1e-4


def test_recomputing_everything_is_full_prefill_and_so_is_a_document_in_its_own_order(stage: Engine) -> None:
    chunks = known(stage)
    for row, order in itertools.product(("cacheblend", "in-document"), (chunks[1:], chunks[::-1])):
        ready = stage.prefill(QUESTION, order, method=row, recompute=1.0)
        assert (ready.logits - stage.reader.stock(ready.prompt.token_ids)[0]).abs().max() <= 1e-4
        assert ready.report.charged == 1
    ready = stage.prefill(QUESTION, chunks, method="auto")
    assert [chunk.cache for chunk in ready.report.chunks] == ["exact"] * 4
    assert (ready.logits - stage.reader.stock(ready.prompt.token_ids)[0]).abs().max() <= 1e-4
    assert ready.report.charged == 0


def test_an_answer_goes_on_as_the_stock_model_does_from_the_same_states(stage: Engine) -> None:
    order = known(stage)[::-1]
    ready, answer = stage.prefill(QUESTION, order, method="naive", max_new_tokens=8), []
    cache, last = spliced(stage.reader, ready), len(ready.prompt) - 1
    expected, logits = cache.read([ready.prompt.token_ids[last]], last), ready.logits
    for step in range(1, 9):
        token = int(expected.argmax())
        answer.append(token)
        assert (logits - expected).abs().max() <= 1e-4, step
        logits, expected = ready.step(token), cache.read([token], last + step)
    assert len(set(answer)) > 1


def test_questions_at_once_get_what_each_gets_alone(stage: Engine) -> None:
    chunks = known(stage)
    pairs = [(question, order) for question in ("which?", "who?") for order in (chunks[:2], chunks[1:])]
    brief = Sampling(max_new_tokens=6)
    for method, share in (("epic", 0.0), ("epic", 1.0), ("auto", None)):
        together = stage.answers(pairs, method=method, recompute=share, sampling=brief)
        for (question, order), answer in zip(pairs, together, strict=True):
            assert answer.text == stage.answer(question, order, method=method, recompute=share, sampling=brief).text


@pytest.mark.parametrize("name", ["ape", "cachecraft", "droidspeak", "ragcache", "infoflow", "cacheblend-gradual"])
def test_what_does_more_than_reuse_in_order_is_refused_by_name(stage: Engine, name: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"method '{name}' does more than reuse chunks in order.*--method"):
        stage.answer(QUESTION, known(stage), method=replace(METHODS[name]))


def test_a_share_is_refused_but_for_the_defaults_which_recomputes_nothing_and_says_so(stage: Engine) -> None:
    with pytest.raises(UnsupportedModel, match=r"method 'cacheblend' would recompute 15% of the tokens.*--recompute 0"):
        stage.prefill(QUESTION, known(stage), method="cacheblend")
    with pytest.raises(UnsupportedModel, match=r"method 'auto' would recompute 50% of the tokens"):
        stage.prefill(QUESTION, known(stage), method="auto", recompute=0.5)
    report = stage.answer(QUESTION, known(stage)[::-1], sampling=Sampling(max_new_tokens=1)).report
    assert report.tokens.recomputed == 0
    assert any("nothing was recomputed: 2 of the model's 4 layers carry a state" in note for note in report.notes)


def test_the_doctor_examines_it_and_says_what_its_states_take(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tiny_reader("qwen3.5")
    reader.tuning = None
    monkeypatch.setattr(doctor, "_QUESTIONS", doctor._QUESTIONS[-1:])
    monkeypatch.setattr(doctor, "_MILL", doctor._MILL[:4])
    check, rungs = doctor.check_full_recompute(reader), doctor.ladder(reader)
    assert check.passed
    assert [rung.name for rung in rungs[:4]] == ["the default, auto", "no reuse, in two steps", "raw KV", "fused KV"]
    assert [group.layers for group in doctor.layer_groups(reader)] == [(1, 3)]


def test_short_chunks_are_noted_by_figures(tmp_path: Path) -> None:
    def notes(name: str, tokens: int) -> list[str]:
        embedder = SimpleNamespace(max_tokens=10_000, name="made")
        with Index(tmp_path / name, tiny_reader(name)) as index:
            return list(Chunking(index, embedder, tokens).notes())  # type: ignore[arg-type]

    (said,) = notes("qwen3.5", 10)
    assert re.match(r"2 of the model's 4 layers .* as much as keys and values of \d+ tokens.*at most 10:", said)
    assert not notes("lfm2", 1000)
    assert not notes("llama", 16)


@pytest.mark.parametrize(
    ("name", "takes", "tokens"), [("qwen3.5", 400, 400), ("qwen3.5", 9000, 0), ("llama", 9000, 256)]
)
def test_a_new_index_has_chunks_whose_kv_outweighs_their_states(
    tmp_path: Path, name: str, takes: int, tokens: int
) -> None:
    class Patient(Letters):
        max_tokens = takes

    reader = tiny_reader(name)
    reader.__dict__["bytes_per_chunk"] = 3000 * reader.bytes_per_token - 1 if reader.states else 0
    with RagCache.open(tmp_path / "index", model=reader, embedder=Patient()) as rag:
        assert rag.chunk_tokens == (tokens or 3000)
        rag.ingest(write_pages(tmp_path / "files"), chunk_tokens=40)
    with RagCache.open(tmp_path / "index", model=reader, embedder=Patient()) as rag:
        assert rag.chunk_tokens == 40, "what was asked for is kept"


def test_states_are_kept_in_the_chunks_file_and_a_flipped_bit_of_one_is_a_miss(tmp_path: Path) -> None:
    reader = tiny_reader("qwen3.5")
    with Index(tmp_path / "index", reader) as index:
        ingest(index, ["naive"])
        engine = Engine(reader, index)
        before = engine.prefill(QUESTION, known(engine)[1:3], method="naive")
    with Index(tmp_path / "index", reader) as index:
        engine = Engine(reader, index)
        again = engine.prefill(QUESTION, known(engine)[1:3], method="naive")
        assert torch.equal(before.logits, again.logits)
        assert again.report.cached == 2
        key = index.catalog.encodings(known(engine)[1].id, "alone")[0].key
    (file,) = (tmp_path / "index" / "kv").rglob(f"*{key}*")
    written = bytearray(file.read_bytes())
    written[-1] ^= 1  # extras stand last
    file.chmod(0o600)
    file.write_bytes(written)
    with Index(tmp_path / "index", reader) as index:
        engine = Engine(reader, index)
        ready = engine.prefill(QUESTION, known(engine)[1:3], method="naive")
        assert [chunk.cache for chunk in ready.report.chunks] == ["miss", "hit"]
        assert "state." in ready.report.chunks[0].reason
        assert "fails its checksum" in ready.report.chunks[0].reason
        assert torch.equal(before.logits, ready.logits)
