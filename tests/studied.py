"""A study's names, as it has them where it is run."""

import runpy
from pathlib import Path
from typing import Any

import pytest

STUDIES = Path(__file__).parents[1] / "bench" / "studies"


def load_study(name: str) -> dict[str, Any]:
    """Read a study, with the modules beside it in reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(STUDIES))
        return runpy.run_path(str(STUDIES / f"{name}.py"))
