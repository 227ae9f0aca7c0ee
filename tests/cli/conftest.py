from collections.abc import Callable
from pathlib import Path

import pytest
from ragcache_cli.main import app
from typer.testing import CliRunner, Result

Run = Callable[..., Result]
PAGES = {
    "tide.txt": "The Tide project is led by Mara Voss. It is based in Kelmar. The budget is 4,200 euros.",
    "otter.md": "# Otter\n\nOtter is a ferry that crosses the sound every hour from seven in the morning.",
    "mill.html": "<html><title>Mill</title><body><p>The mill grinds rye on Mondays.</p></body></html>",
}


@pytest.fixture
def run() -> Run:
    """Runs a command in this process; anything but an exit is a bug and is raised."""

    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write_pages(tmp_path / "documents")


@pytest.fixture(scope="session")
def _ingested(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    root = tmp_path_factory.mktemp("ingested")
    arguments = ["ingest", write_pages(root / "documents"), "--index", root / "index", "--model", checkpoint]
    result = CliRunner().invoke(app, [str(a) for a in (*arguments, "--method", "fusionrag", "--method", "naive")])
    assert result.exit_code == 0, result.output
    return root / "index"


@pytest.fixture
def index(_ingested: Path) -> Path:
    """An index of three documents, encoded for fusionrag and naive; to be read only."""
    return _ingested


def write_pages(folder: Path) -> Path:
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder
