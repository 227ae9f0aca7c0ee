"""The record beside a finetuned adapter's files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragcache.errors import UnusableAdapter
from ragcache.model.tuning import RECORD, Tuning, read_tuning, write_tuning

TUNING = Tuning("kvlink", "independent", "reordered", links=5, documents=8, base="smollm2", steps=100)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_tuning(tmp_path, TUNING)
    assert read_tuning(tmp_path) == TUNING


def test_an_adapter_from_elsewhere_has_no_record(tmp_path: Path) -> None:
    assert read_tuning(tmp_path) is None


def test_keys_that_nobody_knows_are_ignored(tmp_path: Path) -> None:
    change(tmp_path, seconds=12.5)
    assert read_tuning(tmp_path) == TUNING


@pytest.mark.parametrize("version", [2, None, "1"])
def test_another_version_is_refused_by_its_number(tmp_path: Path, version: object) -> None:
    change(tmp_path, version=version)
    with pytest.raises(UnusableAdapter, match=rf"version {version!r}, and this ragcache reads version 1"):
        read_tuning(tmp_path)


@pytest.mark.parametrize("key", ["recipe", "attention", "positions", "links", "documents", "base", "steps"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    change(tmp_path, **{key: None}, drop=key)
    with pytest.raises(UnusableAdapter, match=f"it has no '{key}'"):
        read_tuning(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("attention", "causal"), ("positions", "overlapped"), ("links", -1), ("links", True), ("steps", 1.5), ("base", 3)],
)
def test_a_value_of_no_meaning_is_named(tmp_path: Path, key: str, value: object) -> None:
    change(tmp_path, **{key: value})
    with pytest.raises(UnusableAdapter, match=f"its '{key}' is {value!r}"):
        read_tuning(tmp_path)


def test_links_of_no_document_are_refused(tmp_path: Path) -> None:
    change(tmp_path, documents=0)
    with pytest.raises(UnusableAdapter, match="5 links for 0 documents"):
        read_tuning(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x80"])
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_bytes(text.encode("latin-1"))
    with pytest.raises(UnusableAdapter, match="is damaged"):
        read_tuning(tmp_path)


def test_the_record_is_read_without_torch(tmp_path: Path) -> None:
    write_tuning(tmp_path, TUNING)
    read = f"from ragcache.model.tuning import read_tuning; read_tuning({str(tmp_path)!r})"
    code = f"import sys; {read}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def change(folder: Path, *, drop: str = "", **values: Any) -> None:
    write_tuning(folder, TUNING)
    record = json.loads((folder / RECORD).read_text()) | values
    record.pop(drop, None)
    (folder / RECORD).write_text(json.dumps(record))
