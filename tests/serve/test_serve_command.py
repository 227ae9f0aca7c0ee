"""`ragcache serve` in a process of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from openai_ragcache.listening import bind, listen
from ragcache_cli.main import app
from serve.served import MODEL
from typer.testing import CliRunner

from ragcache import RagCache
from ragcache.errors import InvalidArgument

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


@pytest.mark.parametrize("port", [None, "1"], ids=["in use", "of an address that is another's"])
def test_an_address_that_cannot_be_had_is_refused_before_anything_is_loaded(tmp_path: Path, port: str | None) -> None:
    script = "import sys; from ragcache_cli.main import app\ntry: app(sys.argv[1:])\n"
    script += "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, option = ("127.0.0.1", "--port") if port is None else ("host.invalid", "--host")
        port = port or str(taken.getsockname()[1])
        line = ["serve", "--host", host, "--port", port, "--index", str(tmp_path / "new")]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, *line], capture_output=True, text=True, check=False,
            env={**os.environ, "RAGCACHE_API_KEY": "k" * 16},
        )  # fmt: skip
    assert done.stdout.split() == ["2", "False"], done.stderr
    [said] = done.stderr.splitlines()
    assert f"{host}:{port} cannot be listened on (" in said
    assert said.endswith(f"name another with {option}")
    assert not (tmp_path / "new").exists()


def test_of_two_that_take_an_address_at_once_the_later_one_is_refused_in_our_words() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first[0].getsockname()[1]
        with bind("127.0.0.1", port) as second:
            listen(first, 1)
            with pytest.raises(InvalidArgument, match=rf"127\.0\.0\.1:{port} cannot be listened on .*--port"):
                listen(second, 1)


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
    options = [
        "--index",
        str(tmp_path / "new"),
        "--model",
        MODEL,
        "--port",
        "0",
        "--learn",
        "3",
        "--ingest-embedded",
        "5",
    ]
    assert CliRunner().invoke(app, ["serve", *options]).exit_code == 0
    [(tenants, settings, _, _)] = given
    assert settings.ingest_embedded_bytes == 5 << 20
    assert tenants.all[0].rag.index.second_sight.limit == 3 << 20
    tenants.close()


def test_wrong_limits_are_refused_by_name() -> None:
    for options in (["--queue", "0"], ["--max-prompt-tokens", "0"], ["--port", "70000"], ["--ingest-embedded", "-1"]):
        result = CliRunner().invoke(app, ["serve", *options])
        assert result.exit_code == 2, result.output
