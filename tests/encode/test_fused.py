"""Fusing by similarity, by structure and by both; what is stored of how far the values moved, and old KV without it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_reader
from encode.contexts import TIDE, assert_same, dense, opened, put, stored

from ragcache.encode import Fused, Prefixed
from ragcache.encode.fused import VALUE_SHIFT
from ragcache.engine.engine import Engine
from ragcache.errors import InvalidArgument
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.store import Int8

LIMIT = 212
#: A model that takes so many tokens, and one that takes more but turns every key anew beyond them.
LIMITED: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": LIMIT},
    "phi3": {
        "max_position_embeddings": 4 * LIMIT,
        "original_max_position_embeddings": LIMIT,
        "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [4.0] * 8,
            "original_max_position_embeddings": LIMIT,
        },
    },
}  # fmt: skip
ROW = Method("fused", Fused(neighbours=2))


def alike(names: Sequence[str]) -> Callable[[str, int], list[str]]:
    """The others, the last one first."""
    return lambda chunk, count: [name for name in reversed(names) if name != chunk][:count]


@pytest.mark.parametrize(
    ("encoder", "company"),
    [
        (Fused(2), [5, 4]),
        (Fused(2, by="structure"), [1, 2]),
        (Fused(9, by="structure"), [0, 1, 2]),
        (Fused(2, by="both"), [5, 2]),
        (Fused(3, by="both"), [5, 1, 2]),
        (Fused(9, by="both"), [5, 4, 0, 1, 2]),
    ],
    ids=lambda value: value.recipe if isinstance(value, Fused) else str(value),
)
def test_a_chunk_is_computed_behind_its_company(
    encoder: Fused, company: list[int], reader: Reader, tmp_path: Path
) -> None:
    """The fourth chunk of six, against a dense forward whose mask lets neighbours see the prefix and themselves."""
    index, tide, mill = opened(tmp_path, reader)
    names = [*tide, *mill]
    list(index.encode(encoder, neighbours=alike(names)))
    chunks = [row.token_ids for row in index.catalog.chunks(names)]
    parts = [index.prefix_segment.token_ids, *(chunks[n] for n in company), chunks[3]]
    # A neighbour's base encoding stood right behind the prefix, so each brings its own copy of it, which only it sees.
    rows, position = list[tuple[int, bool, int, int]](), 0
    for part, ids in enumerate(parts):
        if 0 < part < len(parts) - 1:
            rows += [(part, False, token, position - len(parts[0]) + i) for i, token in enumerate(parts[0])]
        rows += [(part, True, token, position + i) for i, token in enumerate(ids)]
        position += len(ids)
    last = len(parts) - 1
    sees = torch.tensor(
        [[k[3] <= q[3] if k[0] == q[0] else q[0] == last and k[1] for k in rows] for q in rows]
    )  # fmt: skip
    offset = len(parts[0])  # positions from 0
    found = dense(reader, [row[2] for row in rows], torch.tensor([row[3] + offset for row in rows]), sees)
    own = [at for at, row in enumerate(rows) if row[0] == last]
    kv = stored(index, encoder, names[3])
    assert kv.start == position - len(chunks[3])
    assert_same(reader, kv, [(k[:, own], v[:, own]) for k, v in found], kv.start + offset)


@pytest.mark.parametrize(("by", "most"), [("similarity", [5, 4, 1]), ("structure", [0, 1, 2]), ("both", [5, 0, 1, 2])])
@pytest.mark.parametrize("architecture", LIMITED)
def test_company_goes_no_further_than_the_model_takes(
    architecture: str, by: Any, most: list[int], tmp_path: Path
) -> None:
    """Similar chunks and those before it in its document have one room, up to where longrope would turn keys anew."""
    reader = tiny_reader(architecture, **LIMITED[architecture])
    assert reader.limit == LIMIT
    index, tide, mill = opened(tmp_path, reader)
    names = [*tide, *mill]
    kvs: dict[int, int] = {}

    def near(chunk: str, count: int) -> list[str]:
        return [names[n] for n in (5, 4, 1, 0, 2, 3) if names[n] != chunk][:count]

    list(index.encode(Fused(by=by), neighbours=near))
    for at, name in enumerate(names):
        kv = stored(index, Fused(by=by), name)
        kvs[at] = kv.start + len(kv)
    assert max(kvs.values()) <= reader.limit
    keys = {index.catalog.encodings(name, "prefixed")[0].key: at for at, name in enumerate(names)}
    [row] = index.catalog.encodings(names[3], Fused(by=by).recipe)
    assert [keys[key] for key in row.left if key in keys] == most


def test_kv_that_an_older_version_made_beyond_the_models_length_is_made_anew(tmp_path: Path) -> None:
    reader = tiny_reader("llama", max_position_embeddings=LIMIT)
    index, tide, mill = opened(tmp_path, reader)
    near = alike([*tide, *mill])
    reader.limit *= 2
    list(index.encode(Fused(), neighbours=near))
    reader.limit //= 2
    (chunk,) = index.chunks(tide[:1])
    found = index.load(chunk, Fused(), None)
    assert found.reason.endswith("it was made beyond the 212 tokens that the model takes")
    assert found.left == "system prefix", "the base encoding serves"
    assert [row.id for row in index.missing(Fused())] == tide[:1]
    assert list(index.encode(Fused(), neighbours=near)) == tide[:1]
    assert index.load(chunk, Fused(), None).reason == Fused().recipe


def test_the_papers_recipe_keeps_its_name() -> None:
    assert Fused(neighbours=10).recipe == "fused(neighbours=10)"
    assert len({Fused(10, by=by).recipe for by in ("similarity", "structure", "both")}) == 3  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'nothing'"):
        Fused(by="nothing")  # type: ignore[arg-type]


def test_structure_asks_for_no_embeddings(reader: Reader, tmp_path: Path) -> None:
    index, *_ = opened(tmp_path, reader)
    list(index.encode(Fused(2, by="structure")))
    assert index.missing(Fused(2, by="structure")) == []


def test_structure_is_forgotten_when_it_changes_and_similarity_is_not(reader: Reader, tmp_path: Path) -> None:
    index, tide, mill = opened(tmp_path, reader)
    for by in ("similarity", "structure"):
        list(index.encode(Fused(1, by=by), neighbours=alike([*tide, *mill])))  # type: ignore[arg-type]
    put(index, "tide", (TIDE[1], TIDE[0], *TIDE[2:]))
    assert {row.id for row in index.missing(Fused(1, by="structure"))} == set(tide)
    assert index.missing(Fused(1)) == []
    assert len(stored(index, Fused(1), tide[0])) == len(index.uncached_chunk(TIDE[0]).segment)


@pytest.mark.parametrize("codec", [None, Int8()], ids=["raw", "int8"])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_value_shift_by_hand(architecture: str, codec: Any, readers: Callable[[str], Reader], tmp_path: Path) -> None:
    reader = readers(architecture)
    with Index(tmp_path / "index", reader, codec=codec) as index:
        names = put(index, "tide", TIDE)
        list(index.encode(ROW.encode or Fused(), neighbours=alike(names)))
        for name in names:
            after, before = stored(index, ROW.encode or Fused(), name), stored(index, Prefixed(), name)
            shift = after.extras[VALUE_SHIFT]
            assert (shift.dtype, shift.shape) == (torch.float32, (len(after),))
            expected = []
            for t in range(len(after)):
                ratios = []
                for a, b in zip(before.layers, after.layers, strict=True):
                    old, new = a[1].double(), b[1].double()
                    size = sum(float((old[:, u] ** 2).sum()) for u in range(len(after))) / len(after)
                    ratios.append(float(((new[:, t] - old[:, t]) ** 2).sum()) / size)
                expected.append(sum(ratios) / len(ratios))
            close = {"rtol": 1e-4, "atol": 1e-6} if codec is None else {"rtol": 0.1, "atol": 1e-3}
            torch.testing.assert_close(shift.double(), torch.tensor(expected, dtype=torch.float64), **close)
            assert shift.min() > 0


def test_without_neighbours_no_value_moves(reader: Reader, tmp_path: Path) -> None:
    index, tide, _ = opened(tmp_path, reader)
    list(index.encode(Fused(2), neighbours=lambda *_: []))
    assert stored(index, Fused(2), tide[0]).extras[VALUE_SHIFT].max() < 1e-9


@pytest.fixture
def old(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Engine, list[str]]:
    """An index made by a version that stored no extras."""
    index, tide, mill = opened(tmp_path, reader)
    names = [*tide, *mill]
    with monkeypatch.context() as patch:
        patch.setattr(Fused, "extras", ())
        real = Fused.encode
        patch.setattr(Fused, "encode", lambda *args: [replace(kv, extras={}) for kv in real(*args)])
        list(index.encode(Fused(2), neighbours=alike(names)))
    return Engine(reader, index), names


def test_old_kv_without_the_extras_is_passed_over_and_says_how_to_renew_it(old: tuple[Engine, list[str]]) -> None:
    engine, names = old
    served = engine.prefill("Where?", engine.index.chunks(names[::-1]), method=ROW).report.chunks[1:]
    assert {chunk.cache for chunk in served} == {"hit"}, "the base encoding serves"
    assert all("prefixed; " in chunk.reason and VALUE_SHIFT in chunk.reason for chunk in served)
    assert all("ragcache ingest" in chunk.reason for chunk in served)
    engine.index.catalog.drop_recipe("prefixed")
    (chunk,) = engine.index.chunks([names[3]])
    found = engine.index.load(chunk, Fused(2), None)
    assert found.kv is None
    assert f"`ragcache ingest --method NAME --index {engine.index.path}`" in found.reason


def test_ingestion_makes_old_kv_anew_and_looks_only_once(
    old: tuple[Engine, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, names = old
    index = engine.index
    keys = {index.catalog.encodings(name, Fused(2).recipe)[0].key for name in names}
    assert {row.id for row in index.missing(Fused(2))} == set(names)
    list(index.encode(Fused(2), neighbours=alike(names)))
    assert {index.catalog.encodings(name, Fused(2).recipe)[0].key for name in names} == keys, "under the same keys"
    assert all(VALUE_SHIFT in stored(index, Fused(2), name).extras for name in names)
    served = engine.prefill("Where?", index.chunks(names[::-1]), method=ROW).report.chunks[1:]
    assert all(chunk.reason == Fused(2).recipe for chunk in served)
    monkeypatch.setattr(index._kv, "read", lambda *_: pytest.fail("read again"))
    assert index.missing(Fused(2)) == []


def test_a_method_may_need_what_fused_stores() -> None:
    assert METHODS["fusionrag"].encode is not None
    assert METHODS["fusionrag"].encode.extras == (VALUE_SHIFT,)
