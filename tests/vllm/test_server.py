"""`ragcache serve --engine vllm` in a process of its own, asked over HTTP as any client asks."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragcache_cli.main import app
from typer.testing import CliRunner
from vllm_asking import QUESTION, Chosen, expected

from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.model.decode import Sampling

pytestmark = pytest.mark.vllm
SERVE = [sys.executable, "-W", "ignore", "-c", "from ragcache_cli.main import app; app()", "serve", "--engine", "vllm"]
OPTIONS = ["--max-model-len", "1024", "--block-size", "32", "--enforce-eager"]  # vLLM's own
SLOWEST = 1800  # seconds until it answers, on a machine that does much else
TOKENS = 12


@pytest.fixture(scope="module")
def served(index: Index) -> Index:
    """The index, which says as `ragcache ingest` does what it is of."""
    index.catalog.set_setting("rag", {"name": "bundled", "dtype": "float32", "method": "auto"})
    return index


@pytest.fixture(scope="module")
def client(served: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of a server that was started by the command."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    line = [*SERVE, "--index", str(served.path), "--port", port, *OPTIONS]
    log = tmp_path_factory.mktemp("server") / "log"
    env = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    how: dict[str, Any] = {"env": env, "start_new_session": True}
    with log.open("w") as written, subprocess.Popen(line, stdout=written, stderr=written, **how) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SLOWEST) as client:
                _wait(client, process, log)
                yield client
            process.send_signal(signal.SIGTERM)
            process.wait(SLOWEST)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its engine is a process of its own


def _wait(client: httpx.Client, process: Any, log: Path) -> None:
    """Until it answers; a server that ended instead is shown with its last words."""
    until = time.monotonic() + SLOWEST
    while time.monotonic() < until and process.poll() is None:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(1)
    raise AssertionError(log.read_text()[-3000:])


def ask(client: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(path, json={"model": "bundled", "max_tokens": TOKENS, "temperature": 0, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_command_starts_vllms_server_which_answers_as_our_engine_from_the_indexs_kv(
    client: httpx.Client, engine: Engine, chunks: Chosen
) -> None:
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["bundled"]
    chosen = chunks(70, 5)
    ids, _ = expected(engine, chosen, "auto")
    answer = ask(client, "/v1/completions", prompt=ids)
    report = answer["kv_transfer_params"]["ragcache"]
    assert (report["method"], report["recompute"], report["chunks"], report["misses"]) == ("auto", 0.05, 5, [])
    assert report["loaded_tokens"] > len(ids) * 0.8
    assert report["recomputed_tokens"] > 0
    ours = engine.answer(QUESTION, chosen, method="auto", sampling=Sampling(max_new_tokens=TOKENS))
    assert answer["choices"][0]["text"].strip() == ours.text.strip()


def test_messages_of_any_client_meet_their_chunks(client: httpx.Client, served: Index, chunks: Chosen) -> None:
    texts = [chunk.text for chunk in chunks(71, 4)]
    messages = [
        {"role": "system", "content": served.template.system},
        {"role": "user", "content": "\n\n".join([*reversed(texts), QUESTION])},
    ]
    answer = ask(client, "/v1/chat/completions", messages=messages)
    assert answer["kv_transfer_params"]["ragcache"]["chunks"] == 4
    full = ask(client, "/v1/chat/completions", messages=messages, kv_transfer_params={"ragcache": False})
    assert full["kv_transfer_params"] is None


def test_metrics_count_what_was_loaded(client: httpx.Client) -> None:
    lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith("ragcache:tokens_total")]
    loaded = [float(line.rsplit(" ", 1)[1]) for line in lines if 'kind="loaded"' in line]
    assert sum(loaded) > 100


def test_the_doctor_finds_that_it_fits(served: Index) -> None:
    result = CliRunner().invoke(app, ["doctor", "--engine", "vllm", "--index", str(served.path), "--json"])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["fits"]) == (0, True), found
    words = {one["part"]: one["words"] for one in found["findings"]}
    assert "0.32" in words["vLLM"]
    assert "ForCausalLM" in words["model class"]
