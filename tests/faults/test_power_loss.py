"""A loss of power takes what was not synced, and nothing that was promised."""

from pathlib import Path

import pytest
from conftest import tiny_reader
from ragcache_bench import power_loss
from ragcache_bench.power_loss import SURVIVALS, lose_power_everywhere


def test_what_was_promised_outlives_a_loss_of_power(tmp_path: Path) -> None:
    lost = list(lose_power_everywhere(tiny_reader(), tmp_path, every=23))
    assert len(lost) >= 5 * len(SURVIVALS)
    assert [one for one in lost if not one.clean] == []


@pytest.mark.parametrize("forgotten", ["files", "folders"])
def test_a_store_that_does_not_sync_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten) -> None:
    def sync(self: power_loss.RecordingDisk, handle: int) -> None:
        if Path(power_loss._path_of(handle)).is_dir() != (forgotten == "folders"):
            recorded(self, handle)

    recorded = power_loss.RecordingDisk.sync
    monkeypatch.setattr(power_loss.RecordingDisk, "sync", sync)
    assert sum(one.lost for one in lose_power_everywhere(tiny_reader(), tmp_path, every=48)) > 0
