"""Every row of the table on the pretend accelerator: the tokens, logits and answers of the CPU."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from ragcache_bench.device_parity import (
    WAYS,
    Outcome,
    answer,
    encode_for,
    encode_rows,
    opened,
    prefill,
    share_of,
    tiny_reader,
)  # fmt: skip
from ragcache_bench.pretend_accelerator import pretend_accelerator

import ragcache
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.store import CODECS, unpack

PACKAGE = Path(ragcache.__file__).parent
LAYERS = 4
SHARES = (0.0, 0.15, 1.0)
CLOSE = 1e-4  # fp32


def cells() -> list[tuple[Method, float | None]]:
    return [(row, share) for row in METHODS.values() for share in (SHARES if row.recompute is not None else (None,))]


@dataclass(frozen=True, eq=False)
class Run:
    """What one device said."""

    cells: dict[tuple[str, float | None], Outcome]
    ways: dict[str, object]
    hazards: Sequence[str] = ()


def run(folder: Path, device: str) -> Run:
    reader = tiny_reader(LAYERS, device)
    with opened(folder, reader) as (engine, chunks):
        found = {(row.name, share): prefill(engine, chunks, row, share) for row, share in cells()}
        return Run(found, {way: answer(engine, chunks, way) for way in WAYS})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """An index made on the CPU, asked there and then opened on the accelerator."""
    folder = tmp_path_factory.mktemp("rows")
    encode_rows(folder, tiny_reader(LAYERS, "cpu"))
    expected = run(folder, "cpu")
    with pretend_accelerator(PACKAGE) as accelerator:
        found = run(folder, "cuda")
        assert accelerator.operations > 30_000, "the accelerator did not take part"
    return expected, Run(found.cells, found.ways, tuple(accelerator.hazards))


@pytest.mark.parametrize(("row", "share"), cells(), ids=lambda one: getattr(one, "name", str(one)))
def test_a_row_computes_what_it_computes_on_the_cpu(runs: tuple[Run, Run], row: Method, share: float | None) -> None:
    expected, found = (one.cells[row.name, share] for one in runs)
    assert found.chose_as(expected)
    assert found.differs(expected) <= CLOSE


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_the_cpu_s_however_it_is_asked_for(runs: tuple[Run, Run], way: str) -> None:
    expected, found = runs
    assert expected.ways[way]
    assert found.ways[way] == expected.ways[way]


def test_nothing_is_changed_before_it_is_there(runs: tuple[Run, Run]) -> None:
    assert runs[1].hazards == ()


@pytest.mark.parametrize(
    ("codec", "names"),
    [("raw", ("naive", "fusionrag", "droidspeak", "cachecraft", "auto")), ("int8", ("naive", "auto"))],
)
def test_an_index_made_on_the_accelerator_serves_the_cpu(tmp_path: Path, codec: str, names: Sequence[str]) -> None:
    rows = [METHODS[name] for name in names]
    with pretend_accelerator(PACKAGE), opened(tmp_path, tiny_reader(LAYERS, "cuda"), CODECS[codec]) as (engine, chunks):
        for row in rows:
            encode_for(engine, chunks, row)
        made = set(engine.index.store.list())
        found = [prefill(engine, chunks, row, share_of(row)) for row in rows]
    with opened(tmp_path, tiny_reader(LAYERS, "cpu"), CODECS[codec]) as (engine, chunks):
        expected = [prefill(engine, chunks, row, share_of(row)) for row in rows]
        assert set(engine.index.store.list()) == made, "what the accelerator stored was not found"
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.chose_as(theirs)
        assert ours.differs(theirs) <= CLOSE


@pytest.mark.parametrize("name", ["fusionrag", "droidspeak"])
def test_the_accelerator_makes_the_kv_that_the_cpu_makes(tmp_path: Path, name: str) -> None:
    row, made = METHODS[name], []
    assert row.encode is not None
    for device in ("cpu", "cuda"):
        with ExitStack() as stack:
            if device == "cuda":
                stack.enter_context(pretend_accelerator(PACKAGE))
            engine, chunks = stack.enter_context(opened(tmp_path / device, tiny_reader(LAYERS, device)))
            encode_for(engine, chunks, row)
            keys = [engine.index.catalog.encodings(chunk.id, row.encode.recipe)[0].key for chunk in chunks]
            made.append([unpack(engine.index.store.get(key), key) for key in keys])
    for ours, theirs in zip(*made, strict=True):
        assert (ours.token_ids, ours.start, set(ours.extras)) == (theirs.token_ids, theirs.start, set(theirs.extras))
        pairs = [
            *zip(ours.layers, theirs.layers, strict=True),
            *((ours.extras[n], theirs.extras[n]) for n in ours.extras),
        ]
        assert all((one - other).abs().max() <= CLOSE for one, other in pairs)
