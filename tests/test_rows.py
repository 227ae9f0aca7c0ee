"""Every row of the table, those of other packages included, on every kind of prompt and architecture."""

from collections.abc import Callable, Iterator

import pytest
from matrix import ARCHITECTURES, CASES, RowStage, check, stage

from ragcache.method import Method
from ragcache.methods import list_methods


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RowStage]]:
    """A stage for each architecture, made once."""
    made: dict[str, RowStage] = {}

    def get(architecture: str) -> RowStage:
        if architecture not in made:
            made[architecture] = stage(tmp_path_factory.mktemp("rows"), architecture)
        return made[architecture]

    yield get
    for one in made.values():
        one.engine.index.close()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("row", list_methods().values(), ids=lambda row: row.name)
def test_a_row_answers_and_is_full_prefill_at_one(
    stages: Callable[[str], RowStage], row: Method, architecture: str, case: str
) -> None:
    check(stages(architecture), row, case)
