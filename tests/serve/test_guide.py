"""The code of the guides to the server runs against one, and what its containers are told is known."""

import json
import re
from pathlib import Path

import pytest
import typer
import yaml
from openai_ragcache import Tenants
from ragcache_cli.main import app
from serve.served import serve

from ragcache import RagCache

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # a guide's clients are not closed
def test_the_guide_s_clients_run(
    rag: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [(GUIDES / name).read_text() for name in ("serving.md", "front-ends.md")]  # the first uploads
    blocks = re.findall(r"```python\n(.*?)```", "\n".join(pages), re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "tide.md").write_text("The Tide project is led by Mara Voss. It is based in Kelmar.")
    monkeypatch.chdir(tmp_path)
    with RagCache.open(tmp_path / "index", model=rag.reader) as own, serve(Tenants.of_one(own), max_tokens=8) as url:
        for block in blocks:
            exec(block.replace("http://127.0.0.1:8000/v1", url), {})
    assert "from tide.md\n1 chunks reused" in capsys.readouterr().out


def test_the_containers_are_started_with_options_that_there_are() -> None:
    known = {name for param in typer.main.get_command(app).commands["serve"].params for name in param.opts}  # type: ignore[attr-defined]
    [line] = re.findall(r"^CMD (.*)$", (GUIDES / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    services = yaml.safe_load((GUIDES / "docker" / "compose.yaml").read_text())["services"]
    for command in (json.loads(line), services["ragcache"]["command"]):
        assert command[0] == "serve"
        assert {word for word in command if word.startswith("--")} <= known
    assert services["open-webui"]["environment"]["OPENAI_API_BASE_URL"] == "http://ragcache:8000/v1"
