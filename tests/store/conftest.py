import hashlib
from collections.abc import Callable

import pytest
import torch

from ragcache.store import Blob

torch.set_num_threads(1)


@pytest.fixture
def make_blob() -> Callable[..., Blob]:
    """A small blob whose layers differ in shape and dtype, as real models' may."""

    def make(seed: int = 0, tokens: int = 5, dtype: torch.dtype = torch.bfloat16) -> Blob:
        random = torch.Generator().manual_seed(seed)
        return Blob(
            key=key_of(seed),
            token_ids=tuple(range(seed, seed + tokens)),
            start=7,
            layers=(
                torch.randn(2, 2, tokens, 8, generator=random).to(dtype),
                torch.randn(2, 1, tokens, 4, generator=random),
            ),
            extras={"hidden": torch.randn(tokens, 3, generator=random), "none": torch.empty(0)},
            about={"fingerprint": "f", "recipe": "alone()", "rope": '{"theta": 10000}'},
        )

    return make


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


@pytest.fixture(name="key_of")
def key_of_fixture() -> Callable[[int], str]:
    return key_of
