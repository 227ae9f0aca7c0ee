"""The committed adapters of the bundled reader: small, of the recipe that their folder names, and able to read."""

from pathlib import Path

import pytest
from ragcache_bench.metrics import exact_match
from ragcache_bench.tasks import TASKS

from ragcache import Engine, Index
from ragcache.encode import Alone
from ragcache.errors import UntunedReader
from ragcache.methods import METHODS
from ragcache.model.loading import load_reader

pytestmark = pytest.mark.slow

ADAPTERS = sorted((Path(__file__).parents[2] / "bench" / "adapters").iterdir())
MOST_BYTES = 2 << 20


@pytest.mark.parametrize("folder", ADAPTERS, ids=lambda folder: folder.name)
def test_a_committed_adapter_reads_chunks_apart_by_its_own_row(folder: Path, tmp_path: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) <= MOST_BYTES
    reader, examples = load_reader("bundled", adapter=folder), TASKS["sections-twin"].examples(6, seed=5)
    assert reader.tuning is not None
    assert reader.tuning.recipe == folder.name
    with Index(tmp_path / "index", reader) as index:
        for number, text in enumerate(dict.fromkeys(text for one in examples for text in one.chunks)):
            index.put(f"{number}", "", [(text, 0, len(text))], {})
        list(index.encode(METHODS[folder.name].encode or Alone()))
        engine, ids = Engine(reader, index), {row.text: row.id for row in index.catalog.all_chunks()}
        right = list[float]()
        for one in examples:
            answer = engine.answer(one.question, index.chunks([ids[text] for text in one.chunks]), method=folder.name)
            assert answer.report.charged_flops < 0.5
            right.append(exact_match(answer.text, one.answers))
        assert sum(right) >= 4
        other = next(one.name for one in ADAPTERS if one.name != folder.name)
        with pytest.raises(UntunedReader, match=folder.name):
            engine.answer(examples[0].question, examples[0].chunks, method=other)
