"""The files of the search graph: damage is named before Chroma reads it, and nothing sound is refused."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragcache.errors import IndexFormat
from ragcache.retrieve import Vectors
from ragcache.retrieve.graph_files import GraphFiles

IDS = [f"c{row:02}" for row in range(40)]
UNIT = np.eye(40, 64, dtype=np.float32) * 0.8 + 0.075


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Vectors whose graph is on the disk, which takes a thousand changes."""
    vectors = Vectors(tmp_path / "vectors", "chunks")
    for _ in range(26):
        vectors.upsert(IDS, UNIT)
    vectors.close()
    assert {file.name for file in vectors.path.glob("*/*.bin")} >= {"data_level0.bin", "header.bin"}
    return vectors.path


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", ["data_level0.bin", "header.bin", "length.bin"])
@pytest.mark.parametrize("act", ["query", "upsert", "ids", "compact"])
def test_a_flipped_bit_is_named_by_whatever_is_asked_first(path: Path, name: str, act: str) -> None:
    [file] = path.glob(f"*/{name}")
    flip(file, file.stat().st_size // 2)
    vectors = Vectors(path, "chunks")
    asked = {"query": (UNIT[0], 3), "upsert": (IDS[:1], UNIT[:1])}.get(act, ())
    with pytest.raises(IndexFormat, match=rf"{name} is not what was written.*ragcache ingest"):
        getattr(vectors, act)(*asked)
    vectors.close()


def test_a_file_that_is_gone_is_named(path: Path) -> None:
    [file] = path.glob("*/link_lists.bin")
    file.unlink()
    with pytest.raises(IndexFormat, match=r"link_lists\.bin is not what was written"):
        Vectors(path, "chunks").query(UNIT[0], 3)


def test_what_a_killed_writer_left_without_checksums_is_taken_as_it_is(path: Path) -> None:
    script = f"""
    import os
    from pathlib import Path
    import numpy as np
    from ragcache.retrieve import Vectors
    from ragcache.retrieve.graph_files import GraphFiles
    vectors = Vectors(Path({str(path)!r}), "chunks")
    rows = np.eye(1200, 64, dtype=np.float32) + 0.1
    GraphFiles.record = lambda self: os._exit(9)
    vectors.upsert([f"d{{row:04}}" for row in range(1200)], rows)
    """
    before = next(path.glob("*/data_level0.bin")).read_bytes()
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert killed.returncode == 9
    assert next(path.glob("*/data_level0.bin")).read_bytes() != before
    for _ in range(2):  # the second opening holds it against what the first one has recorded
        vectors = Vectors(path, "chunks")
        assert vectors.count() == 1240
        assert len(vectors.query(UNIT[0], 50)) == 50
        vectors.close()


def test_no_checksum_is_of_a_file_as_it_was_before(path: Path) -> None:
    """Another program writes the graph; whoever comes next must not take the old checksums for the new files'."""
    [file] = path.glob("*/data_level0.bin")
    recorded = json.loads((path / "ragcache-sums.json").read_text())
    (path / "ragcache-sums.json").write_text(json.dumps({**recorded, "state": "another"}))
    flip(file, 900)
    first = GraphFiles(path)
    first.check()
    (path / "ragcache-sums.json").unlink()
    first.record()
    GraphFiles(path).check()
    flip(file, 900)
    with pytest.raises(IndexFormat, match="data_level0"):
        GraphFiles(path).check()


def test_a_full_disk_takes_the_checksums_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    vectors = Vectors(path, "chunks")
    monkeypatch.setattr(Path, "write_text", refuse)
    vectors.upsert(["new"], UNIT[:1])
    assert not (path / "ragcache-sums.json").exists()
    monkeypatch.undo()
    assert vectors.query(UNIT[0], 2)[0][0] in {"c00", "new"}
    assert (path / "ragcache-sums.json").exists()
    vectors.close()
