import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcache.errors import IndexFormat, UnusableIndex
from ragcache.store import kv_key, load_or_create_secret

SECRET = bytes(range(32))
GOLDEN = "626fc01784eaa4645bcdfa7dc73ac341f602775ba14ae579debc6d6f9e9c0a93"
PROGRAM = """
from ragcache.store import kv_key
print(kv_key(bytes(range(32)), fingerprint="llama/é", recipe="fused(neighbours=10)", left=["ab", "c"],
             token_ids=[1, 128000, 2]))
"""

fields = st.fixed_dictionaries(
    {
        "fingerprint": st.text("ab\x00", max_size=3),
        "recipe": st.text("ab\x00", max_size=3),
        "left": st.lists(st.text("ab\x00", max_size=3), max_size=3),
        "token_ids": st.lists(st.integers(0, 3), max_size=3),
    }
)


def test_a_key_is_the_same_in_every_process_whatever_the_hash_seed():
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
        )
        for seed in ("1", "2")
    ]
    assert [run.communicate()[0].strip() for run in runs] == [GOLDEN, GOLDEN]


@given(fields, fields)
def test_different_fields_give_different_keys(one, other):
    same = kv_key(SECRET, **one) == kv_key(SECRET, **other)
    assert same == (one == other)


def test_text_cannot_move_from_one_field_to_the_next():
    assert kv_key(SECRET, fingerprint="ab", recipe="c", left=[], token_ids=[]) != kv_key(
        SECRET, fingerprint="a", recipe="bc", left=[], token_ids=[]
    )
    assert kv_key(SECRET, fingerprint="", recipe="", left=["ab"], token_ids=[]) != kv_key(
        SECRET, fingerprint="", recipe="", left=["a", "b"], token_ids=[]
    )


def test_two_collections_never_share_a_key():
    what = {"fingerprint": "f", "recipe": "r", "left": [], "token_ids": [1]}
    assert kv_key(SECRET, **what) != kv_key(bytes(32), **what)


def test_a_new_format_changes_every_key(monkeypatch):
    what = {"fingerprint": "f", "recipe": "r", "left": [], "token_ids": [1]}
    before = kv_key(SECRET, **what)
    monkeypatch.setattr("ragcache.store.key.FORMAT", 2)
    assert kv_key(SECRET, **what) != before


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "secret"
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(load_or_create_secret, [path] * 32))
    assert len(secrets) == 1
    assert len(secrets.pop()) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]


def test_a_secret_is_its_owners_alone_in_a_folder_that_others_may_read(tmp_path):
    tmp_path.chmod(0o755)
    load_or_create_secret(tmp_path / "secret")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_two_secrets_differ(tmp_path):
    assert load_or_create_secret(tmp_path / "a") != load_or_create_secret(tmp_path / "b")


def test_a_damaged_secret_is_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"short")
    with pytest.raises(IndexFormat, match="5 bytes instead of 32"):
        load_or_create_secret(tmp_path / "secret")


def test_a_secret_in_no_folder_is_refused(tmp_path):
    with pytest.raises(UnusableIndex, match="cannot be opened"):
        load_or_create_secret(tmp_path / "nowhere" / "secret")
