"""The code of docs/guides/serving.md runs against a server."""

import re
from pathlib import Path

import pytest
from openai_ragcache import Tenants
from serve.served import serve

from ragcache import RagCache

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "serving.md"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # a guide's clients are not closed
def test_the_guide_s_clients_run(
    rag: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "tide.md").write_text("The Tide project is led by Mara Voss. It is based in Kelmar.")
    monkeypatch.chdir(tmp_path)
    with RagCache.open(tmp_path / "index", model=rag.reader) as own, serve(Tenants.of_one(own), max_tokens=8) as url:
        for block in blocks:
            exec(block.replace("http://127.0.0.1:8000/v1", url), {})
    assert "from tide.md\n1 chunks reused" in capsys.readouterr().out
