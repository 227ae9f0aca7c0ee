"""A tenant that probes learns nothing of another one's documents; the whole of it is `make bench/tenant-probes`."""

from pathlib import Path

import numpy as np
import pytest
from studied import load_study

pytestmark = pytest.mark.slow

STUDY = load_study("tenant_probes")


@pytest.mark.parametrize("own", [False, True])
def test_no_hit_and_no_id_tells_of_another_tenant_s_documents(tmp_path: Path, own: bool) -> None:
    found = STUDY["run"](tmp_path, 24, 2, seed=0, own=own, log=lambda _: None)
    assert found["ids"]["said_alike"] or own, "one's own pages have ids that are known"
    assert (found["prompts"]["hits"] > 0) == own, "the same probes of one's own pages do hit"
    assert found["prompts"]["said_alike"] == (not own)


def test_times_that_differ_are_told_apart_and_equal_ones_are_not() -> None:
    draw, test = np.random.default_rng(0), STUDY["permutation_test"]
    one, other = draw.normal(100, 10, 80), draw.normal(100, 10, 80)
    assert test(one, other, seed=0) > 0.05
    assert test(one, other - 8, seed=0) < 0.01
