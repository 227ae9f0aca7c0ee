"""Blobs in an object store, and the folder in front of it: refused, slow, cut and lost requests; never a wrong byte."""

from pathlib import Path
from typing import Any

import pytest
import torch
from remote.conftest import Server

from ragcache.errors import CorruptBlob, InvalidArgument, StorageFull, UnreachableStore
from ragcache.store import Blob, LocalStore, RemoteStore, TieredStore, pack, unpack
from ragcache.store import remote as module


def make(number: int) -> tuple[str, list[bytes | memoryview]]:
    key = f"{number:02x}" * 32
    layers = [torch.full((2, 1, 64, 64), float(number + 1)) for _ in range(3)]
    return key, pack(Blob(key, tuple(range(64)), 0, layers))


def joined(parts: list[bytes | memoryview]) -> bytes:
    return b"".join(bytes(part) for part in parts)


def opened(s3: Server, folder: Path, budget: int = 1 << 30, **how: Any) -> TieredStore:
    store = RemoteStore("s3://bucket/notes", timeout=2.0, patience=s3.patience)
    return TieredStore(LocalStore(folder, durable=False), store, budget_bytes=budget, **how)


def test_what_one_machine_stores_another_one_reads(s3: Server, tmp_path: Path) -> None:
    key, parts = make(1)
    one, other = opened(s3, tmp_path / "one"), opened(s3, tmp_path / "other", read_only=True)
    assert one.put_if_absent(key, parts)
    assert not opened(s3, tmp_path / "third").put_if_absent(key, [b"something else"])
    assert other.get(key).numpy().tobytes() == joined(parts)
    assert list(other.list()) == [key]
    assert other.head(key) == len(joined(parts))
    with pytest.raises(StorageFull, match="only read"):
        other.put_if_absent(*make(2))
    s3.asked.clear()
    assert other.get(key).numpy().tobytes() == joined(parts)
    assert s3.asked == [], "the folder has it by now"


def test_ranges_are_read_without_the_rest(s3: Server, tmp_path: Path) -> None:
    key, parts = make(1)
    whole = joined(parts)
    store = opened(s3, tmp_path / "one", budget=0)
    store.put_if_absent(key, parts)
    found = store.get_ranges(key, [(0, 8), (100, 300)])
    assert [one.numpy().tobytes() for one in found] == [whole[:8], whole[100:300]]
    with pytest.raises(CorruptBlob, match="no such bytes"):
        store.get_ranges(key, [(0, len(whole) + 1)])


@pytest.mark.parametrize("fault", ["503", "slow", "cut"])
def test_a_read_that_fails_is_repeated(s3: Server, tmp_path: Path, fault: str) -> None:
    key, parts = make(1)
    opened(s3, tmp_path / "one").put_if_absent(key, parts)
    s3.patience = 20.0
    s3.fail(1 if fault == "slow" else 2, fault, method="GET")
    assert opened(s3, tmp_path / "other").get(key).numpy().tobytes() == joined(parts)
    assert len(s3.asked) >= 3


@pytest.mark.parametrize("fault", ["503", "lost"])
def test_a_write_that_fails_is_repeated_and_takes_effect_once(s3: Server, tmp_path: Path, fault: str) -> None:
    key, parts = make(1)
    s3.patience = 20.0
    s3.fail(1, fault, method="PUT")
    opened(s3, tmp_path / "one").put_if_absent(key, parts)
    assert [method for method, _ in s3.asked] == ["PUT", "PUT"]
    assert opened(s3, tmp_path / "other").get(key).numpy().tobytes() == joined(parts)


def test_a_store_that_is_down_is_a_reason_and_asked_once(
    s3: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REST_SECONDS", 60.0)
    store = opened(s3, tmp_path / "one")
    s3.fail(1_000, "503")
    with pytest.raises(CorruptBlob, match="could not be read") as met:
        store.get(make(1)[0])
    assert not met.value.read, "it may be there the next time"
    s3.asked.clear()
    with pytest.raises(CorruptBlob, match="did not answer a moment ago"):
        store.get(make(2)[0])
    assert s3.asked == []


def test_a_bad_copy_in_the_folder_is_fetched_again(s3: Server, tmp_path: Path) -> None:
    key, parts = make(1)
    store = opened(s3, tmp_path / "one")
    store.put_if_absent(key, parts)
    file = store.tier.path_of(key)
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    assert store.get(key).numpy().tobytes() == joined(parts)
    assert file.read_bytes() == joined(parts)


def test_a_bad_object_is_no_kv_and_can_be_replaced_by_the_writer_alone(s3: Server, tmp_path: Path) -> None:
    key, parts = make(1)
    bad = bytearray(joined(parts))
    bad[-1] ^= 1
    writer, reader = opened(s3, tmp_path / "one"), opened(s3, tmp_path / "other", read_only=True)
    writer.remote.put_if_absent(f"kv/{key[:2]}/{key}.safetensors", [bytes(bad)])
    for store, moved in ((reader, False), (writer, True)):
        with pytest.raises(CorruptBlob, match="fails its checksum"):
            store.get(key)
        assert store.tier.head(key) is None, "what fails its checks is not kept"
        assert store.quarantine(key) == moved
    assert list(writer.quarantined()) == [key]
    assert writer.put_if_absent(key, parts)
    assert reader.get(key).numpy().tobytes() == joined(parts)
    writer.delete(key)
    assert (list(writer.list()), list(writer.quarantined())) == ([], [])


def test_the_folder_keeps_what_is_used_and_stays_within_its_budget(s3: Server, tmp_path: Path) -> None:
    blobs = dict(map(make, range(6)))
    size = len(joined(blobs[make(0)[0]]))
    writer = opened(s3, tmp_path / "one", budget=0)
    for key, parts in blobs.items():
        writer.put_if_absent(key, parts)
    assert writer.total_bytes() == 0
    reader = opened(s3, tmp_path / "other", budget=3 * size + size // 2)
    favourite, *others = blobs
    for key in others:
        for wanted in (favourite, favourite, key):
            unpack(reader.get(wanted), wanted)
        assert reader.total_bytes() <= reader.budget_bytes
    assert reader.tier.head(favourite)
    assert reader.total_bytes() >= 2 * size


def test_the_folder_follows_what_is_asked_for(tmp_path: Path) -> None:
    remote = RemoteStore(f"file://{tmp_path}/shared")
    blobs = dict(make(number) for number in range(6))
    writer = TieredStore(LocalStore(tmp_path / "one"), remote, budget_bytes=0)
    for key, parts in blobs.items():
        writer.put_if_absent(key, parts)
    size = len(joined(next(iter(blobs.values()))))
    reader = TieredStore(LocalStore(tmp_path / "other"), remote, budget_bytes=3 * size + size // 2)
    old, new = list(blobs)[:3], list(blobs)[3:]
    for key in (*old * 9, *new * 3):
        reader.get(key)
    assert set(reader.tier.list()) == set(new)


def test_a_folder_that_machines_share_is_an_object_store_too(tmp_path: Path) -> None:
    key, parts = make(1)
    remote = RemoteStore(f"file://{tmp_path / 'shared'}")
    one, other = (TieredStore(LocalStore(tmp_path / name), remote, budget_bytes=0) for name in ("one", "other"))
    assert one.put_if_absent(key, parts)
    assert not other.put_if_absent(key, parts)
    assert other.get(key).numpy().tobytes() == joined(parts)
    assert list(other.list()) == [key]
    assert other.quarantine(key)
    assert list(other.list()) == []


@pytest.mark.parametrize(
    "url",
    ["s3://id:a-secret@bucket/x", "s3://id@bucket/x", "az://c/x?sig=a-secret", "ftp://bucket/x", "s3://", "notes"],
)
def test_a_url_with_credentials_or_of_another_kind_is_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(InvalidArgument) as met:
        RemoteStore(url)
    assert "a-secret" not in str(met.value)


def test_wrong_credentials_are_said_in_one_sentence(s3: Server) -> None:
    s3.fault = lambda method, path: "503"
    store = RemoteStore("s3://bucket/notes", timeout=1.0, patience=0.2)
    with pytest.raises(UnreachableStore, match="credentials in the environment") as met:
        store.put_if_absent("x", [b"1"])
    assert "\n" not in str(met.value)
    assert "a-secret-of-the-provider" not in str(met.value)
