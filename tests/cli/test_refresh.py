"""`ragcache refresh`, and the commands that tell of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def grown(run: Run, documents: Path, tmp_path: Path, checkpoint: Path) -> Path:
    """An index that pages came into one by one; to be written to."""
    for page in sorted(documents.iterdir()):
        done = run("ingest", page, "--index", tmp_path / "grown", "--model", checkpoint, "--method", "fusionrag")
        assert done.exit_code == 0, done.output
    assert (
        f"2 chunks of fused(neighbours=10) were fused before their neighbours of today came; run `ragcache refresh \
--index {tmp_path / 'grown'}`"
        in " ".join(done.stderr.split())
    )
    return tmp_path / "grown"


def test_what_is_out_of_date_is_told_and_made_anew(run: Run, grown: Path) -> None:
    assert "2 chunks of fused(neighbours=10)" in run("store", "stats", "--index", grown).stderr
    assert json.loads(run("store", "stats", "--index", grown, "--json").stdout)["outdated"] == {
        "fused(neighbours=10)": 2
    }
    assert run("refresh", "--index", grown).stdout.startswith("encoded: 2 fused(neighbours=10) · ")
    assert run("store", "stats", "--index", grown).stderr == ""
    assert run("refresh", "--index", grown).stdout.startswith("encoded: nothing was out of date · ")
    again = json.loads(run("refresh", "--index", grown, "--method", "fusionrag", "--json").stdout)
    assert (again["encoded"], again["outdated"]) == ({}, {})


def test_a_method_that_nobody_knows_is_refused_before_anything_is_loaded(run: Run, grown: Path) -> None:
    refused = run("refresh", "--index", grown, "--method", "fusion")
    assert refused.exit_code == 2
    assert "no method is called 'fusion'; `ragcache methods` lists" in refused.stderr
