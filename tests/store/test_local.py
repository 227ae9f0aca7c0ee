import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from ragcache.errors import CorruptBlob, InvalidArgument, StorageFull
from ragcache.store import LocalStore, pack, unpack


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "kv")


def files_under(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_put_is_read_back(store, make_blob):
    blob = make_blob()
    assert store.put_if_absent(blob.key, pack(blob))
    found = unpack(store.get(blob.key), blob.key)
    assert torch.equal(found.layers[0], blob.layers[0])


def test_a_reopened_store_finds_its_blobs(store, key_of):
    keys = [key_of(number) for number in range(20)]
    for key in keys:
        store.put_if_absent(key, [key.encode()])
    reopened = LocalStore(store.root)
    assert list(reopened.list()) == sorted(keys)
    assert bytes(reopened.get(keys[0]).numpy()) == keys[0].encode()


def test_the_first_writer_wins_and_the_second_changes_nothing(store, key_of):
    assert store.put_if_absent(key_of(0), [b"first"])
    assert not store.put_if_absent(key_of(0), [b"second"])
    assert bytes(store.get(key_of(0)).numpy()) == b"first"
    assert len(files_under(store.root)) == 1


def test_of_concurrent_writers_exactly_one_wins(store, key_of, monkeypatch):
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)  # none sees that another was sooner
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: store.put_if_absent(key_of(0), [b"%d" % n] * 1000), range(24)))
    assert won.count(True) == 1
    assert bytes(store.get(key_of(0)).numpy()) == b"%d" % won.index(True) * 1000
    assert len(files_under(store.root)) == 1


def test_ranges_are_read_alone(store, key_of):
    store.put_if_absent(key_of(0), [b"0123", memoryview(b"456789")])
    parts = store.get_ranges(key_of(0), [(0, 2), (3, 7), (10, 10)])
    assert [bytes(part.numpy()) for part in parts] == [b"01", b"3456", b""]


def test_a_range_beyond_the_end_is_a_corrupt_blob(store, key_of):
    store.put_if_absent(key_of(0), [b"0123"])
    with pytest.raises(CorruptBlob, match="only 4 bytes"):
        store.get_ranges(key_of(0), [(0, 5)])


@pytest.mark.parametrize("span", [(-1, 2), (3, 2)])
def test_a_backward_range_is_refused(store, key_of, span):
    with pytest.raises(InvalidArgument):
        store.get_ranges(key_of(0), [span])


def test_blobs_are_read_into_the_memory_that_the_caller_gives(tmp_path, key_of):
    arena = torch.zeros(100, dtype=torch.uint8)
    store = LocalStore(tmp_path / "kv", allocate=lambda nbytes: arena[:nbytes])
    store.put_if_absent(key_of(0), [b"abc"])
    assert store.get(key_of(0)).data_ptr() == arena.data_ptr()
    assert bytes(arena[:4].numpy()) == b"abc\0"


def test_a_missing_blob_has_no_size_and_cannot_be_read(store, key_of):
    assert store.head(key_of(0)) is None
    with pytest.raises(CorruptBlob, match="missing"):
        store.get(key_of(0))


def test_head_tells_the_size(store, key_of):
    store.put_if_absent(key_of(0), [b"abc", b"de"])
    assert store.head(key_of(0)) == 5


def test_a_deleted_blob_is_gone_with_its_quarantined_copy(store, key_of):
    store.put_if_absent(key_of(0), [b"bad"])
    assert store.quarantine(key_of(0))
    store.put_if_absent(key_of(0), [b"good"])
    assert store.delete(key_of(0))
    assert files_under(store.root) == []
    assert not store.delete(key_of(0))


def test_a_quarantined_blob_makes_room_for_a_new_one(store, key_of):
    store.put_if_absent(key_of(0), [b"bad"])
    assert store.quarantine(key_of(0))
    assert not store.quarantine(key_of(0))
    assert list(store.list()) == []
    assert store.put_if_absent(key_of(0), [b"good"])
    assert bytes(store.get(key_of(0)).numpy()) == b"good"


@pytest.mark.parametrize(
    "key", ["../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "/" + "a" * 63, "", "a\0" * 32, "٣" * 64]
)
def test_only_hexadecimal_keys_reach_the_disk(store, key):
    for verb in (store.get, store.head, store.delete, store.quarantine):
        with pytest.raises(InvalidArgument, match="64 lower-case hexadecimal"):
            verb(key)
    with pytest.raises(InvalidArgument):
        store.put_if_absent(key, [b""])


def test_everything_is_for_the_owner_only(store, key_of):
    store.put_if_absent(key_of(0), [b"abc"])
    store.put_if_absent(key_of(1), [b"abc"])
    store.quarantine(key_of(1))
    for path in (store.root, *store.root.rglob("*")):
        assert mode_of(path) == (0o700 if path.is_dir() else 0o600), path


def test_foreign_files_are_not_listed(store, key_of):
    store.put_if_absent(key_of(0), [b"abc"])
    (store.root / key_of(0)[:2] / "notes.safetensors").touch()
    (store.root / "notes").touch()
    assert list(store.list()) == [key_of(0)]


@pytest.mark.parametrize("call", ["writev", "fsync", "link"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_leaves_nothing_behind(store, key_of, monkeypatch, call, code):
    store.put_if_absent(key_of(0), [b"before"])  # and its shard's folder is made
    sibling = key_of(0)[:-1] + ("0" if key_of(0)[-1] != "0" else "1")

    def refuse(*args, **options):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(StorageFull, match=os.strerror(code)):
            store.put_if_absent(sibling, [b"x" * 1000])
    assert files_under(store.root) == [key_of(0) + ".safetensors"]
    assert store.put_if_absent(sibling, [b"x" * 1000])


def test_short_writes_are_continued(store, key_of, monkeypatch):
    monkeypatch.setattr(os, "writev", lambda handle, views: os.write(handle, views[0][:3]))
    store.put_if_absent(key_of(0), [b"0123456789", b"abcd"])
    assert bytes(store.get(key_of(0)).numpy()) == b"0123456789abcd"


def test_a_full_disk_keeps_what_it_has(tmp_path, make_blob):
    mount = tmp_path / "small"
    mount.mkdir()
    if not shutil.which("mount") or _mount(mount).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        store = LocalStore(mount / "kv")
        blobs = [make_blob(seed, tokens=500) for seed in range(40)]
        with pytest.raises(StorageFull, match="free some space"):
            _put_all(store, [(blob.key, pack(blob)) for blob in blobs])
        kept = list(store.list())
        assert kept
        assert files_under(store.root) == [f"{key}.safetensors" for key in kept]
        for key in kept:
            unpack(store.get(key), key)
    finally:
        subprocess.run(["umount", mount], check=True)


def _mount(folder) -> subprocess.CompletedProcess[bytes]:
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "ragcache-test", folder]
    return subprocess.run(command, capture_output=True, check=False)


def test_a_read_that_fails_is_a_corrupt_blob(store, key_of, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    store.put_if_absent(key_of(0), [b"abc"])
    monkeypatch.setattr(os, "readv", refuse)
    with pytest.raises(CorruptBlob, match="cannot be read"):
        store.get(key_of(0))


def test_a_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "kv").touch()
    with pytest.raises(StorageFull):
        LocalStore(tmp_path / "kv")


def test_old_temporary_files_are_swept_and_young_ones_kept(store, key_of):
    store.put_if_absent(key_of(0), [b"abc"])
    shard = store.root / key_of(0)[:2]
    old, young = shard / ".tmp-old", shard / ".tmp-young"
    old.touch()
    young.touch()
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    LocalStore(store.root)
    assert (old.exists(), young.exists()) == (False, True)
    assert store.sweep(older_than=0) == 1
    assert files_under(store.root) == [key_of(0) + ".safetensors"]


def _put_all(store, contents) -> None:
    for key, parts in contents:
        store.put_if_absent(key, parts)


def _write_a_piece(handle, views) -> int:
    time.sleep(0.0005)
    return os.write(handle, views[0][:16384])


def _write_until_killed(root, contents) -> int:
    child = os.fork()
    if child == 0:
        try:
            os.writev = _write_a_piece  # so that kills fall into the writing
            store = LocalStore(root)
            while True:
                _put_all(store, contents)
                for key, _ in contents:
                    store.delete(key)
        finally:
            os._exit(1)
    return child


def _kill_after(seconds: float, children) -> None:
    time.sleep(seconds)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        assert os.waitpid(child, 0)[1] == signal.SIGKILL, "a writer failed before it was killed"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_writers_publish_only_whole_blobs(tmp_path, make_blob):
    root = tmp_path / "kv"
    blobs = [make_blob(seed, tokens=2000) for seed in range(40)]
    contents = [(blob.key, [bytes(part) for part in pack(blob)]) for blob in blobs]
    checked = interrupted = 0
    for trial in range(30):
        _kill_after(0.03 + 0.01 * trial, [_write_until_killed(root, contents) for _ in range(2)])
        store = LocalStore(root)
        for key in store.list():
            unpack(store.get(key), key)
            checked += 1
        interrupted += store.sweep(older_than=-1)
        if interrupted >= 6 and checked >= 6:
            break
    assert interrupted, "no kill fell into a write, so nothing was tried"
    assert checked, "nothing was published, so nothing was tried"
    _put_all(store, contents)
    assert files_under(root) == sorted(f"{key}.safetensors" for key, _ in contents)


@pytest.mark.parametrize(("durable", "waits"), [(True, 2), (False, 0)])
def test_only_a_durable_store_waits_for_the_disk(tmp_path, monkeypatch, key_of, durable, waits):
    store = LocalStore(tmp_path / "kv", durable=durable)
    (tmp_path / "kv" / key_of(1)[:2]).mkdir()
    store.put_if_absent(key_of(1), [b"makes the shard known"])
    store.delete(key_of(1))
    calls, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (calls.append(handle), sync(handle)))
    assert store.put_if_absent(key_of(1), [b"content"])
    assert len(calls) == waits
    assert bytes(store.get(key_of(1))) == b"content"


def test_a_forked_process_keeps_nobody_waiting(tmp_path):
    script = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from ragcache.store import hold_turn\n"
        "with hold_turn(Path(sys.argv[1])):\n"
        "    if not (child := os.fork()):\n"
        "        time.sleep(60)\n"
        "        os._exit(0)\n"
        "with hold_turn(Path(sys.argv[1]), 1):\n"
        "    print('my turn')\n"
        "os.kill(child, 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "lock"], capture_output=True, text=True)
    assert done.stdout == "my turn\n", done.stderr


def test_where_no_memory_can_be_pinned_a_gpu_s_blobs_go_through_ordinary_memory(tmp_path, key_of, monkeypatch):
    asked, empty = [], torch.empty

    def refused(*size, pin_memory=False, **how):
        asked.append(pin_memory)
        if pin_memory:
            raise RuntimeError("no more of it")
        return empty(*size, **how)

    monkeypatch.setattr(torch, "empty", refused)
    key = key_of(1)
    for device, tried in (("cuda", [True, False]), ("cpu", [False])):
        near = LocalStore.near(torch.device(device), tmp_path / "kv")
        near.put_if_absent(key, [b"abc"])
        asked.clear()
        assert bytes(near.get(key).tolist()) == b"abc"
        assert asked == tried
