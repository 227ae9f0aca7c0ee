"""`ragcache serve` in a process of its own."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from ragcache_cli.main import app
from serve.served import MODEL
from typer.testing import CliRunner

from ragcache import RagCache

pytestmark = pytest.mark.slow

SERVE = [sys.executable, "-W", "ignore", "-c", "from ragcache_cli.main import app; app()", "serve", "--port", "0"]


def test_it_serves_until_it_is_told_to_stop_and_keeps_the_index(rag: RagCache, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{'k' * 16} {rag.index.path}\n{'n' * 16} {tmp_path / 'new'}\n")
    line = [*SERVE, "--keys", str(tmp_path / "keys"), "--model", MODEL]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            url = re.search(r"http://\S+/v1", said)
            assert url, said
            assert "2 tenants" in said
            with httpx.Client(base_url=url[0], timeout=60) as client:
                assert client.get("/models").status_code == 401
                client.headers["Authorization"] = f"Bearer {'n' * 16}"
                ask = {"model": MODEL, "messages": [{"role": "user", "content": "Who?"}], "max_tokens": 2}
                assert client.post("/chat/completions", json=ask).json()["ragcache"]["method"]
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode in (0, -signal.SIGTERM)
    with RagCache.open(tmp_path / "new", model=rag.reader, create=False) as own:
        assert own.documents() == []


def test_it_refuses_to_listen_openly_without_a_key_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGCACHE_API_KEY", raising=False)
    result = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0", "--index", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "RAGCACHE_API_KEY" in result.output
    assert not (tmp_path / "new").exists()


def test_wrong_options_are_refused_without_torch() -> None:
    script = "import sys; from ragcache_cli.main import app\ntry: app(['serve', '--queue', '0'])\n"
    script += "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "False"]


def test_without_the_extra_it_names_the_command_that_installs_it() -> None:
    script = "import sys; sys.modules['fastapi'] = None; from ragcache_cli.main import app; app(['serve'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'ragcache-kv[serve]'" in done.stderr


def test_memory_for_what_is_learnt_and_embedded_is_given_in_mib(
    rag: RagCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr("openai_ragcache.running.run", lambda *args: given.append(args))
    options = ["--index", str(tmp_path / "new"), "--model", MODEL, "--learn", "3", "--ingest-embedded", "5"]
    assert CliRunner().invoke(app, ["serve", *options]).exit_code == 0
    [(tenants, settings, _)] = given
    assert settings.ingest_embedded_bytes == 5 << 20
    assert tenants.all[0].rag.index.second_sight.limit == 3 << 20
    tenants.close()


def test_wrong_limits_are_refused_by_name() -> None:
    for options in (["--queue", "0"], ["--max-prompt-tokens", "0"], ["--port", "70000"], ["--ingest-embedded", "-1"]):
        result = CliRunner().invoke(app, ["serve", *options])
        assert result.exit_code == 2, result.output
