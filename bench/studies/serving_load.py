"""Does `ragcache serve` hold under load, and its index when it is killed? Many streams at once, then kill -9.

    python bench/studies/serving_load.py --minutes 5 --out docs/benchmarks/serving-load.json

A server in a process of its own answers over the demo corpus. First every prompt is asked alone: that is the right
answer, as the server answers one request at a time and greedily. Then so many clients at once stream them over
loopback, each its next as soon as it has an answer; whoever is told 429 waits as long as it is told. The server's
resident memory is sampled all the while; the first fifth counts as warming up. Then the server is killed in the middle
of streams, with uploads behind them that wait to be ingested. `ragcache store verify` looks at the index, and a server
that is started anew is asked every prompt again, and ingests the uploads.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write

from ragcache import RagCache
from ragcache.bundled import corpus_path
from ragcache.index.verify import verify

NAME = "asked"
_SERVE = [sys.executable, "-W", "ignore", "-c", "from ragcache_cli.main import app; app()", "serve", "--port", "0"]
_TOKENS = 16  # of an answer, at most
_CHUNKS = 6  # of a prompt
_MIB = 1 << 20
_CHAT = "/chat/completions"


@dataclass
class Seen:
    """What the clients have seen; several threads add to it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    first_ms: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, outcome: str, first_ms: float | None = None, reason: str = "") -> None:
        """Count a request."""
        with self.lock:
            self.outcomes[outcome] += 1
            if first_ms is not None:
                self.first_ms.append(first_ms)
            if reason:
                self.reasons[reason[:200]] += 1


@dataclass(frozen=True)
class Server:
    """A server's process, and where it listens."""

    process: "subprocess.Popen[str]"
    url: str

    @property
    def resident(self) -> float:
        """MiB of memory that it takes just now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def started(index: Path, model: str, queue: int) -> Iterator[Server]:
    """A server over an index as long as the block runs."""
    line = [*_SERVE, "--index", str(index), "--model", model, "--name", NAME, "--queue", str(queue)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = iter(process.stderr.readline, "")
            url = next((found[0] for row in said if (found := re.search(r"http://\S+/v1", row))), None)
            if url is None:
                raise RuntimeError(f"the server ended with {process.wait()} before it listened")
            threading.Thread(target=lambda: [None for _ in said], daemon=True).start()  # or it waits for a reader
            yield Server(process, url)
        finally:
            process.kill()


def write_prompts(rag: RagCache, number: int, seed: int) -> list[list[dict[str, str]]]:
    """Conversations over chunks of the index, each in an order of its own."""
    draw, chunks = random.Random(seed), rag.retrieve("Who leads the project?", top_k=200)
    found = []
    for _ in range(number):
        notes = "\n\n".join(chunk.text for chunk in draw.sample(chunks, min(_CHUNKS, len(chunks))))
        asked = draw.choice(["Who leads the project?", "Where is it based?", "When did it begin?"])
        found.append([{"role": "user", "content": f"Notes:\n\n{notes}\n\nQuestion: {asked}"}])
    return found


def body(messages: Sequence[dict[str, str]], **more: Any) -> dict[str, Any]:
    """A request for an answer."""
    return {"model": NAME, "messages": list(messages), "max_tokens": _TOKENS, **more}


def ask_alone(url: str, prompts: Sequence[Sequence[dict[str, str]]]) -> tuple[list[str], int]:
    """Every prompt's answer, and how many of all their chunks were reused."""
    answers, reused = [], 0
    with httpx.Client(base_url=url, timeout=600) as client:
        for prompt in prompts:
            told = client.post(_CHAT, json=body(prompt)).raise_for_status().json()
            answers.append(told["choices"][0]["message"]["content"])
            reused += told["ragcache"]["hit"] + told["ragcache"]["exact"]
    return answers, reused


def stream_one(client: httpx.Client, prompt: Sequence[dict[str, str]], right: str, seen: Seen) -> float:
    """Stream an answer, and note what came; gives the seconds that the server asks to wait."""
    began, first, text = time.perf_counter(), None, ""
    with client.stream("POST", _CHAT, json=body(prompt, stream=True)) as answer:
        if answer.status_code == 429:
            seen.note("429")
            return float(answer.headers["Retry-After"])
        if answer.status_code != 200:
            seen.note("error", reason=f"{answer.status_code} {answer.read().decode()}")
            return 0.0
        for line in answer.iter_lines():
            data = line.removeprefix("data: ")
            if not line or data == "[DONE]":
                continue
            event = json.loads(data)
            if "error" in event:
                seen.note("error", reason=str(event["error"]))
                return 0.0
            piece = event["choices"][0]["delta"].get("content", "") if event["choices"] else ""
            first = first or ((time.perf_counter() - began) * 1e3 if piece else None)
            text += piece
    seen.note("right" if text.strip() == right else "wrong", first)
    return 0.0


def load(
    server: Server, prompts: Sequence[Any], answers: Sequence[str], streams: int, seconds: float
) -> dict[str, Any]:
    """Stream from so many clients at once for so long; what came, and the server's memory meanwhile."""
    seen, until, numbers = Seen(), time.monotonic() + seconds, count()
    samples: list[tuple[float, float]] = []

    def act(_: int) -> None:
        with httpx.Client(base_url=server.url, timeout=600) as client:
            while time.monotonic() < until:
                number = next(numbers) % len(prompts)
                try:
                    wait = stream_one(client, prompts[number], answers[number], seen)
                except httpx.HTTPError as error:
                    seen.note("error", reason=repr(error))
                    wait = 0.1
                time.sleep(min(wait, max(0.0, until - time.monotonic())))

    with ThreadPoolExecutor(streams) as pool:
        acting = [pool.submit(act, number) for number in range(streams)]
        began = time.monotonic()
        while not all(one.done() for one in acting):
            samples.append((time.monotonic() - began, server.resident))
            time.sleep(min(1.0, seconds / 50))
        for one in acting:
            one.result()
    return {
        **{outcome: seen.outcomes[outcome] for outcome in ("right", "wrong", "429", "error")},
        "reasons": dict(seen.reasons.most_common(10)),
        "first_token_ms": percentiles(seen.first_ms),
        "resident_mib": memory(samples),
    }


def percentiles(times: Sequence[float]) -> dict[str, float] | None:
    """The median, and what 95 % are below."""
    return {f"p{share}": float(np.percentile(times, share)) for share in (50, 95)} if times else None


def memory(samples: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Memory at the beginning and the end, the most, and how it grows a minute once the first fifth is over."""
    times, sizes = np.array(samples).T
    late = times >= times[-1] / 5
    slope = np.polyfit(times[late], sizes[late], 1)[0] * 60 if late.sum() > 2 else 0.0
    shown = [[round(float(when)), round(float(size), 1)] for when, size in samples[:: max(1, len(samples) // 60)]]
    return {
        "first": float(sizes[0]),
        "warm": float(np.median(sizes[late][: max(1, late.sum() // 10)])),
        "last": float(np.median(sizes[-max(1, len(sizes) // 10) :])),
        "most": float(sizes.max()),
        "mib_a_minute": float(slope),
        "samples": shown,
    }


def kill_in_mid_stream(server: Server, prompts: Sequence[Any], streams: int) -> dict[str, Any]:
    """Kill a server while it streams, and has uploads to ingest; what its clients were told."""
    begun = threading.Semaphore(0)

    def act(number: int) -> str:
        try:
            with (
                httpx.Client(base_url=server.url, timeout=60) as client,
                client.stream("POST", _CHAT, json=body(prompts[number], stream=True)) as answer,
            ):
                for _ in answer.iter_lines():
                    begun.release()
        except httpx.HTTPError:
            return "broken off"
        return "ended"

    with httpx.Client(base_url=server.url, timeout=60) as client:
        store = client.post("/vector_stores", json={"name": "killed"}).json()["id"]
        for page in sorted((corpus_path() / "sites").glob("*.md")):
            file = client.post("/files", files={"file": (page.name, page.read_bytes())}, data={"purpose": "assistants"})
            client.post(f"/vector_stores/{store}/files", json={"file_id": file.json()["id"]})
    with ThreadPoolExecutor(streams) as pool:
        acting = [pool.submit(act, number % len(prompts)) for number in range(streams)]
        for _ in range(2):  # who speaks, and a first piece
            begun.acquire(timeout=60)
        os.kill(server.process.pid, signal.SIGKILL)
        outcomes = Counter(one.result() for one in acting)
    return {"streams": streams, **outcomes, "store": store}


def finish_store(url: str, store: str, patience: float = 120.0) -> dict[str, int]:
    """The states of a store's files once none of them waits any more."""
    until = time.monotonic() + patience
    with httpx.Client(base_url=url, timeout=60) as client:
        while True:
            counts: dict[str, int] = client.get(f"/vector_stores/{store}").json()["file_counts"]
            if not counts["in_progress"] or time.monotonic() > until:
                return counts
            time.sleep(0.2)


def run(
    folder: Path, seconds: float, streams: int, prompts: int, model: str, seed: int, log: Callable[[str], None]
) -> dict[str, Any]:
    """Load, kill, look, and ask again."""
    index = folder / "index"
    with RagCache.open(index, model=model) as rag:
        rag.ingest([corpus_path() / "projects"])
        asked = write_prompts(rag, prompts, seed)
    with started(index, model, streams) as server:
        answers, reused = ask_alone(server.url, asked)
        log(f"{prompts} prompts asked alone: {reused} chunks reused")
        loaded = load(server, asked, answers, streams, seconds)
        log(f"loaded: { {name: value for name, value in loaded.items() if name != 'resident_mib'} }")
        killed = kill_in_mid_stream(server, asked, min(streams, 8))
        server.process.wait()
    found = verify(index)
    log(f"killed: {killed}; sound: {found.sound} {found.next}")
    with started(index, model, streams) as server:
        again, reused_again = ask_alone(server.url, asked)
        counts = finish_store(server.url, killed["store"])
    whole = verify(index)
    return {
        "load": loaded,
        "kill": {
            **{name: value for name, value in killed.items() if name != "store"},
            "sound_behind_it": found.sound,
            "advice_behind_it": list(found.next),
            "blobs": found.blobs,
            "damaged": len(found.damaged_rows) + len(found.bad_blobs) + len(found.bad_vectors) + len(found.files),
            "answers_alike": sum(one == other for one, other in zip(answers, again, strict=True)),
            "prompts": prompts,
            "chunks_reused": [reused, reused_again],
            "files": counts,
            "sound_in_the_end": whole.sound,
        },
    }


def main(
    out: Annotated[Path, typer.Option(help="File to write.")],
    minutes: Annotated[float, typer.Option(help="Of load.")] = 5.0,
    streams: Annotated[int, typer.Option(help="Clients at once.")] = 32,
    prompts: Annotated[int, typer.Option(help="Different ones.")] = 64,
    model: Annotated[str, typer.Option(help="Who answers.")] = "bundled",
    seed: Annotated[int, typer.Option(help="Same prompts every time.")] = 0,
) -> None:
    """Load a server, kill it, and write what was found."""
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), minutes * 60, streams, prompts, model, seed, typer.echo)
    meta = report.meta(
        device=torch.device("cpu"), model=model, minutes=minutes, streams=streams, prompts=prompts, seed=seed
    )
    write(out, {"meta": meta, **found})


if __name__ == "__main__":
    typer.run(main)
