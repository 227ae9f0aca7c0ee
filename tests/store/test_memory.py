import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragcache.errors import CorruptBlob
from ragcache.store import MemoryTier


def never():
    raise AssertionError("it is held and must not be loaded")


def test_a_held_blob_is_not_loaded_again(make_blob):
    tier = MemoryTier(1 << 20)
    blob = tier.get("k", make_blob)
    assert tier.get("k", never) is blob
    assert tier.nbytes == blob.nbytes


def test_the_least_recently_used_blob_goes_first(make_blob):
    blobs = [make_blob(seed) for seed in range(3)]
    tier = MemoryTier(2 * blobs[0].nbytes)
    for key, blob in [("a", blobs[0]), ("b", blobs[1]), ("a", blobs[0]), ("c", blobs[2])]:
        tier.get(key, lambda blob=blob: blob)
    assert tier.get("a", never) is blobs[0]
    assert tier.get("c", never) is blobs[2]
    assert tier.get("b", lambda: blobs[0]) is blobs[0]
    assert tier.nbytes <= tier.budget_bytes


def test_a_blob_beyond_the_budget_is_served_and_not_held(make_blob):
    tier = MemoryTier(make_blob().nbytes - 1)
    assert tier.get("k", make_blob).layers
    assert tier.nbytes == 0


def test_threads_that_ask_together_share_one_load(make_blob):
    tier = MemoryTier(0)  # even where the blob is not held afterwards
    started, loads = threading.Barrier(8), []
    blob = make_blob()

    def load():
        loads.append(1)
        for _ in range(200):  # until the others wait, or a second load shows
            if len(loads) > 1:
                break
            threading.Event().wait(0.001)
        return blob

    def ask(_):
        started.wait()
        return tier.get("k", load)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {blob}
    assert len(loads) == 1


def test_different_keys_load_at_the_same_time(make_blob):
    tier = MemoryTier(1 << 20)
    both = threading.Barrier(2, timeout=10)

    def load():
        both.wait()
        return make_blob()

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda key: tier.get(key, load), "ab"))


def test_a_failed_load_is_raised_and_tried_again(make_blob):
    tier = MemoryTier(1 << 20)

    def fail():
        raise CorruptBlob("k", "flipped")

    with pytest.raises(CorruptBlob):
        tier.get("k", fail)
    assert tier.get("k", make_blob).layers


def test_a_discarded_blob_is_forgotten_even_while_it_loads(make_blob):
    tier = MemoryTier(1 << 20)

    def load():
        tier.discard("k")
        return make_blob()

    tier.get("k", load)
    assert tier.nbytes == 0
    tier.get("k", make_blob)
    tier.discard("k")
    tier.discard("k")
    assert tier.nbytes == 0


def test_the_budget_holds_under_load(make_blob):
    blobs = [make_blob(seed) for seed in range(16)]
    tier = MemoryTier(8 * blobs[0].nbytes)

    def ask(number):
        blob = tier.get(str(number % 16), lambda: blobs[number % 16])
        return blob is blobs[number % 16] and tier.nbytes <= tier.budget_bytes

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(0, 4000, 7)))
