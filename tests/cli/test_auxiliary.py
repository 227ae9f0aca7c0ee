"""`--auxiliary`: which small model chooses tokens for cacheclip."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ragcache_bench.commands.options import with_auxiliary
from typer.testing import Result

from ragcache.errors import InvalidArgument
from ragcache.methods import METHODS

Run = Callable[..., Result]


def test_the_auxiliary_that_is_named_reads_and_no_note_is_left(run: Run, index: Path, checkpoint: Path) -> None:
    ask = ("ask", "Who leads Tide?", "--index", index, "--method", "cacheclip", "--max-new-tokens", 2, "--json")
    without, named = (json.loads(run(*ask, *more).stdout) for more in ((), ("--auxiliary", checkpoint)))
    assert "sibling chose tokens" in " ".join(without["notes"])
    assert named["notes"] == []
    assert named["ms"]["auxiliary"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--auxiliary", "smollm2"), "method 'fusionrag' has no auxiliary model to be 'smollm2'"),
        (("--auxiliary", "./nothing", "--method", "cacheclip"), "cannot load the auxiliary model './nothing'"),
    ],
)
def test_what_cannot_be_an_auxiliary_is_refused(run: Run, index: Path, options: tuple[str, ...], said: str) -> None:
    refused = run("ask", "Who leads Tide?", "--index", index, *options)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert "--auxiliary" in refused.stderr


def test_a_benchmark_gives_it_to_the_rows_that_have_one() -> None:
    rows = with_auxiliary(["auto", "cacheclip", "full+title"], "smollm2")
    assert rows == ["auto", METHODS["cacheclip"].with_auxiliary("smollm2"), "full+title"]
    assert with_auxiliary(["auto"], None) == ["auto"]
    with pytest.raises(InvalidArgument, match="none of auto, naive has one; add cacheclip"):
        with_auxiliary(["auto", "naive"], "smollm2")
