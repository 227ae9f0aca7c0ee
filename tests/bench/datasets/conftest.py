"""Files in every format."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from public_formats import BESIDE, FILES


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a file in one of the formats, or with another text; and what has to lie beside it."""

    def write(name: str, text: str | None = None) -> Path:
        for other, content in BESIDE.get(name, {}).items():
            (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other).write_text(content)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = (FILES[name.removesuffix(".gz")][1] if text is None else text).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    return write


@pytest.fixture(params=FILES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)
