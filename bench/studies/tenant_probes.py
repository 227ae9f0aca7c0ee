"""Can a tenant of `ragcache serve` tell what another one's documents are? By hits, by ids, or by time.

    python bench/studies/tenant_probes.py --out docs/benchmarks/tenant-probes.json

Two tenants share a server, a model and a queue. One has ingested half of some pages, and has been asked over them, so
that their KV is in memory; the other tries to find out which half. Half of its probes are prompts that quote a page of
the first tenant's, or one that nobody has; the other half ask for ids of the first tenant's, or for ids that nobody
has. Pages are cut to equally many tokens, or their lengths would show in the times. Answers are compared word for word,
times by a permutation test of the difference of their means. The same probes by a tenant that has those very pages show
that the test would see a hit.
"""

import random
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import numpy as np
import torch
import typer
from openai_ragcache import Tenants
from openai_ragcache.tenants import Tenant
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from studied_server import serve

from ragcache import RagCache
from ragcache.bundled import corpus_path

KEYS = {"victim": "v" * 16, "probing": "p" * 16}
MODEL = "bundled"
_PERMUTATIONS = 10_000
_WARM = 6  # requests that nobody looks at
_PAGE_TOKENS = 198  # of the shortest page


@dataclass(frozen=True)
class Probe:
    """What one request tells: whether it was about the victim, what was said, and how long that took."""

    about_victim: bool
    said: str
    hits: int
    seconds: float


def cut_pages(tokenizer: Any, count: int, seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """Names and beginnings, equally many tokens each, of the victim's pages of the demo corpus, and of as many others.

    Raises
    ------
    ValueError
        If a page has fewer tokens, or its beginning is not read as those tokens.
    """
    pages = sorted((corpus_path() / "projects").glob("*.md"))
    chosen = random.Random(seed).sample(pages, min(2 * count, len(pages)))
    cut = {}
    for path in chosen:
        ids = tokenizer.encode(path.read_text(encoding="utf-8").strip(), add_special_tokens=False)[:_PAGE_TOKENS]
        cut[path.name] = tokenizer.decode(ids).strip()
        found = len(tokenizer.encode(cut[path.name], add_special_tokens=False))
        if found != _PAGE_TOKENS:
            raise ValueError(f"{path.name} is cut to {found} tokens instead of {_PAGE_TOKENS}")
    names, half = [path.name for path in chosen], len(chosen) // 2
    return {name: cut[name] for name in names[:half]}, {name: cut[name] for name in names[half:]}


def probe_prompts(
    client: httpx.Client, mine: Sequence[str], nobodys: Sequence[str], count: int, seed: int
) -> list[Probe]:
    """Ask over a text of the victim's, or one that nobody has, in a random order."""
    draw, found = random.Random(seed), []
    order = [True, False] * (count // 2)
    draw.shuffle(order)
    for number, about in enumerate([*order[:_WARM], *order]):
        text = draw.choice(mine if about else nobodys)
        content = f"Notes:\n\n{text}\n\nQuestion {number}: Who leads it?"
        body = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 1}
        began = time.perf_counter()
        answer = client.post("/chat/completions", json=body)
        seconds = time.perf_counter() - began
        told = answer.json()["ragcache"]
        found.append(Probe(about, f"{answer.status_code} {told['chunks']}", told["hit"] + told["exact"], seconds))
    return found[_WARM:]


def probe_ids(client: httpx.Client, ids: Sequence[str], count: int, seed: int) -> list[Probe]:
    """Ask for paths with ids of the victim's, or with ids of the same form that nobody has, in a random order."""
    draw, found = random.Random(seed), []
    order = [True, False] * (count // 2)
    draw.shuffle(order)
    for about in [*order[:_WARM], *order]:
        path = draw.choice(ids)
        head, _, name = path.rpartition("/")
        kind, dash, rest = name.rpartition("-")
        own = name if about else f"{kind}{dash}{secrets.token_hex(len(rest) // 2)}"
        began = time.perf_counter()
        answer = client.get(f"{head}/{own}")
        seconds = time.perf_counter() - began
        found.append(Probe(about, f"{answer.status_code} {answer.text.replace(own, 'ID')} {head}", 0, seconds))
    return found[_WARM:]


def compare(probes: Sequence[Probe], seed: int = 0) -> dict[str, Any]:
    """Whether what was said, hits or times differ between probes about the victim and others."""
    about, other = ([one for one in probes if one.about_victim == state] for state in (True, False))
    times = [np.array([one.seconds for one in group]) * 1e3 for group in (about, other)]
    return {
        "probes": len(probes),
        "hits": sum(one.hits for one in about),
        "said_alike": {one.said for one in about} == {one.said for one in other},
        "median_ms": {"victim": float(np.median(times[0])), "nobody": float(np.median(times[1]))},
        "p_value": round(float(permutation_test(*times, seed=seed)), 4),
    }


def permutation_test(one: "np.ndarray[Any, Any]", other: "np.ndarray[Any, Any]", *, seed: int) -> float:
    """How often a random division of the times has means that differ as much; the slowest 2 % count as the next."""
    both = np.minimum(np.concatenate([one, other]), np.percentile(np.concatenate([one, other]), 98))
    wanted, draw, reached = abs(both[: len(one)].mean() - both[len(one) :].mean()), np.random.default_rng(seed), 0
    for _ in range(_PERMUTATIONS):
        both = draw.permutation(both)
        reached += abs(both[: len(one)].mean() - both[len(one) :].mean()) >= wanted - 1e-12
    return (reached + 1) / (_PERMUTATIONS + 1)


def victims_ids(client: httpx.Client) -> list[str]:
    """Paths with ids of a tenant that has uploaded something: a file, a store, and a document."""
    store = client.post("/vector_stores", json={"name": "secret"}).json()["id"]
    files = {"file": ("secret.md", b"The Tide project is led by Mara Voss, and nobody may know.")}
    file = client.post("/files", files=files, data={"purpose": "assistants"}).json()["id"]
    client.post(f"/vector_stores/{store}/files", json={"file_id": file})
    document = client.get("/ragcache/documents").json()["data"][0]["id"]
    return [f"/files/{file}", f"/vector_stores/{store}", f"/ragcache/documents/{document}"]


def run(
    folder: Path, probes: int, pages: int, seed: int, *, own: bool = False, log: Callable[[str], None] = print
) -> dict[str, Any]:
    """All probes of one server; with `own` the probing tenant has the victim's pages, as a control."""
    victim = RagCache.open(folder / "victim", model=MODEL)
    mine, nobodys = cut_pages(victim.reader.tokenizer, pages, seed)
    written = folder / "pages"
    written.mkdir()
    for name, text in mine.items():
        (written / name).write_text(text, encoding="utf-8")
    victim.ingest([written])
    probing = RagCache.open(folder / "probing", model=victim.reader)
    probing.ingest([written if own else corpus_path() / "sites"])
    texts = list(mine.values()), list(nobodys.values())
    tenants = Tenants({KEYS["victim"]: Tenant(victim), KEYS["probing"]: Tenant(probing)})
    try:
        with serve(tenants) as url:
            victims, client = (
                httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120)
                for key in KEYS.values()
            )
            with victims, client:
                ids = victims_ids(victims)
                probe_prompts(victims, texts[0], texts[1], _WARM, seed)
                asked = compare(probe_prompts(client, texts[0], texts[1], probes // 2, seed))
                log(f"prompts: {asked}")
                named = compare(probe_ids(client, ids, probes // 2, seed))
                log(f"ids: {named}")
    finally:
        victim.close()
        probing.close()
    return {"prompts": asked, "ids": named}


def main(
    out: Annotated[Path, typer.Option(help="File to write.")],
    probes: Annotated[int, typer.Option(help="Requests of the probing tenant.")] = 1000,
    pages: Annotated[int, typer.Option(help="Pages of the victim.")] = 25,
    seed: Annotated[int, typer.Option(help="Same probes every time.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Of the processor.")] = 1,
) -> None:
    """Probe, and write what was found."""
    use_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder) / "apart", probes, pages, seed)
        control = run(Path(folder) / "own", min(probes, 200), pages, seed, own=True)
    meta = report.meta(device=torch.device("cpu"), model=MODEL, probes=probes, pages=pages, seed=seed)
    write(out, {"meta": meta, "apart": found, "control": control})


if __name__ == "__main__":
    typer.run(main)
