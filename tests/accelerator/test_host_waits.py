"""How often the host waits for the device: a few times in a prefill, whatever the depth, and hardly in decoding."""

import pytest
from ragcache_bench.host_waits import RowWaits, count_waits

from ragcache.methods import METHODS
from ragcache.model import upload

PREFILL, TOKEN = 8, 1  # at the most; reading which token was chosen is not among them
DEPTHS = (4, 12)


@pytest.fixture(scope="module")
def counted() -> dict[tuple[str, int], RowWaits]:
    return {(one.method, one.layers): one for layers in DEPTHS for one in count_waits(layers)}


@pytest.mark.parametrize("name", METHODS)
def test_the_host_waits_a_few_times_and_never_for_a_layer(counted: dict[tuple[str, int], RowWaits], name: str) -> None:
    shallow, deep = (counted[name, layers] for layers in DEPTHS)
    assert 0 < shallow.prefill <= PREFILL, shallow.lines
    assert deep.lines == shallow.lines
    assert shallow.token == deep.token <= TOKEN


def test_an_upload_that_is_waited_for_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def waiting(values: object, device: object) -> object:
        return upload.torch.as_tensor(values).to(device)

    monkeypatch.setattr("ragcache.model.reader.upload", waiting)
    [row] = count_waits(2, [METHODS["naive"]])
    assert row.token > 0
    assert any(line.startswith("upload at ") for line in row.lines)
