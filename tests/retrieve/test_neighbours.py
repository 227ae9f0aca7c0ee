import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragcache.index.neighbours import find_neighbours
from ragcache.retrieve import Embedder


def plain(embeddings: NDArray[np.float32], keys: list[str], texts: list[str], n: int) -> list[list[int]]:
    """The definition, chunk by chunk."""
    wide = embeddings.astype(np.float64)
    return [
        sorted(
            (other for other in range(len(keys)) if texts[other] != texts[chunk]),
            key=lambda other: (-round(float(wide[chunk] @ wide[other]), 6), keys[other]),
        )[:n]
        for chunk in range(len(keys))
    ]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[NDArray[np.float32], list[str], list[str]]:
    # Few distinct vectors and texts, so that ties and repeats are the rule.
    kinds = draw(st.lists(st.integers(0, 5), min_size=0, max_size=25))
    pool = np.random.default_rng(draw(st.integers(0, 9))).normal(size=(6, 4)).astype(np.float32)
    keys = draw(st.permutations([f"k{number:02}" for number in range(len(kinds))]))
    return pool[kinds].reshape(-1, 4), keys, [f"text {kind % 4}" for kind in kinds]


@settings(deadline=None, max_examples=200)
@given(corpora(), st.integers(0, 12))
def test_blocks_give_what_the_definition_gives(
    corpus: tuple[NDArray[np.float32], list[str], list[str]], n: int
) -> None:
    assert find_neighbours(*corpus, n) == plain(*corpus, n)


def test_ties_hold_through_the_last_bit_of_fp32() -> None:
    near = np.float32([[1, 0], [1, 0], [np.nextafter(np.float32(1), np.float32(0)), 0], [1, 0]])
    assert find_neighbours(near, ["d", "c", "a", "b"], ["1", "2", "3", "4"], 3)[0] == [2, 3, 1]


def test_blocks_meet_without_a_seam() -> None:
    chunks = 2100
    vectors = np.random.default_rng(0).normal(size=(chunks, 8)).astype(np.float32)
    keys, texts = [f"{row:05}" for row in range(chunks)], [str(row) for row in range(chunks)]
    found = find_neighbours(vectors, keys, texts, 3)
    for row in (0, 1023, 1024, 2047, 2048, 2099):
        scores = vectors.astype(np.float64) @ vectors[row].astype(np.float64)
        scores[row] = -np.inf
        assert found[row] == np.argsort(-scores)[:3].tolist()


def test_the_order_of_the_chunks_does_not_matter(embedder: Embedder) -> None:
    texts = [
        f"{who} {does} the {what}."
        for who in ("Ada", "Bo", "Cy")
        for does in ("leads", "funds")
        for what in ("Tide", "Reef", "Dune")
    ]
    texts += texts[:4]
    keys = [f"k{number}" for number in range(len(texts))]
    vectors = embedder.embed(texts)
    shuffled = np.random.default_rng(0).permutation(len(texts))
    first = find_neighbours(vectors, keys, texts, 5)
    second = find_neighbours(vectors[shuffled], [keys[i] for i in shuffled], [texts[i] for i in shuffled], 5)
    for position, chunk in enumerate(shuffled):
        assert [keys[i] for i in first[chunk]] == [keys[shuffled[i]] for i in second[position]]


def test_ten_thousand_chunks_take_seconds() -> None:
    vectors = np.random.default_rng(0).normal(size=(10_000, 64)).astype(np.float32)
    names = [str(number) for number in range(len(vectors))]
    start = time.perf_counter()
    assert all(len(found) == 10 for found in find_neighbours(vectors, names, names, 10))
    assert time.perf_counter() - start < 30
