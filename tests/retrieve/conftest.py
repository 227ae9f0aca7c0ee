import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from ragcache.retrieve import Embedder


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return Embedder()
