"""One index, many processes: four ingest overlapping folders, one removes documents, two ask, at once.

    python bench/studies/many_processes.py --minutes 10 --out docs/benchmarks/many-processes.json

Pages say who leads which project. Half of them stay as they are; the others are rewritten all the time, each by one
process and read by two. An answer is right if it is one that its page has given by then. At the end catalogue, KV files
and vectors are held against each other, and against what one process makes of the same files.
"""

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write

from ragcache import RagCache, Sampling
from ragcache.index.upkeep import collect_garbage
from ragcache.index.verify import verify

INGESTING, ASKING, PAGES = 4, 2, 10  # processes, processes, pages of a folder
PROJECTS = """amber basil cedar delta ember fjord grove heron indigo jasper kestrel lotus maple nectar onyx pearl quartz
raven saffron thistle umber violet willow yarrow zephyr birch coral dune falcon garnet hazel iris juniper koala lagoon
mango nova olive pine quill reef sage tulip urchin vine walnut""".split()
FIRST = "Mara Otto Lena Hugo Nora Ivan Rosa Emil Clara Felix Greta Jonas".split()
LAST = "Voss Lindt Kern Abel Duarte Moss Hale Stein Brandt Pike Rowe Tanner".split()
_GONE = "gone"  # the folder whose documents are removed again and again


@dataclass(frozen=True)
class Place:
    """Where a run keeps what its processes share."""

    root: Path

    @property
    def index(self) -> Path:
        """The index that all of them have open."""
        return self.root / "index"

    def folder(self, number: int) -> Path:
        """The folder whose pages one of the ingesting processes writes."""
        return self.root / "pages" / str(number % INGESTING)

    def page(self, project: int) -> Path:
        """The page about a project."""
        folder = project // PAGES
        name = _GONE if folder >= INGESTING else str(folder)
        return self.root / "pages" / name / f"{PROJECTS[project]}.txt"

    def log(self, role: str) -> Path:
        """Where a process writes what it has seen."""
        return self.root / f"{role}.json"


def write_page(place: Place, project: int, version: int) -> None:
    """Write a version of a project's page, at once and whole, after it was put on record."""
    name = leader(project, version)
    page = place.page(project)
    page.parent.mkdir(parents=True, exist_ok=True)
    with (place.root / "versions.txt").open("a") as record:
        record.write(f"{project} {name}\n")
    title = PROJECTS[project].title()
    part = page.with_suffix(".part")
    part.write_text(f"The {title} project is led by {name}. It has an office in the old harbour. It began in spring.")
    os.replace(part, page)


def leader(project: int, version: int) -> str:
    """Who leads a project according to a version of its page."""
    draw = random.Random(f"{project} {version}")
    return f"{draw.choice(FIRST)} {draw.choice(LAST)}"


def work(root: str, role: str, number: int, until: float) -> None:
    """Be one of the processes until a point in time."""
    torch.set_num_threads(1)
    act: dict[str, Callable[[Place, RagCache, int, random.Random], Counter[str]]] = {
        "ingest": ingest_once, "remove": remove_once, "ask": ask_once,
    }  # fmt: skip
    place, draw, seen = Place(Path(root)), random.Random(f"{role} {number}"), Counter[str]()
    with RagCache.open(place.index, model="bundled") as rag:
        while time.time() < until:
            seen += act[role](place, rag, number, draw)
    place.log(f"{role}{number}").write_text(json.dumps(seen))


def ingest_once(place: Place, rag: RagCache, number: int, draw: random.Random) -> Counter[str]:
    """Rewrite two of one's own pages; ingest one's own folder, the next one's, and, as the first, the third kind."""
    changing = range(number * PAGES + PAGES // 2, (number + 1) * PAGES)
    for project in draw.sample(changing, 2):
        write_page(place, project, draw.randrange(1, 1000))
    folders = [place.folder(number), place.folder(number + 1)]
    found = rag.ingest([*folders, place.root / "pages" / _GONE] if number == 0 else folders)
    return Counter(ingestions=1, documents_added=found.added, documents_changed=found.changed)


def remove_once(place: Place, rag: RagCache, number: int, draw: random.Random) -> Counter[str]:
    """Remove one of the documents that come again."""
    known = [one.source for one in rag.documents() if Path(one.source).parent.name == _GONE]
    if not known:
        time.sleep(0.2)
        return Counter(nothing_to_remove=1)
    return Counter(removed=len(rag.forget(draw.choice(known))))


def ask_once(place: Place, rag: RagCache, number: int, draw: random.Random) -> Counter[str]:
    """Ask about a project, and hold the answer against every version of its page so far."""
    project = draw.randrange(INGESTING * PAGES)
    kind = "steady" if project % PAGES < PAGES // 2 else "changing"
    answer = rag.ask(f"Who leads the {PROJECTS[project].title()} project?", sampling=Sampling(max_new_tokens=12))
    record = (place.root / "versions.txt").read_text().splitlines()
    names = {name for number, _, name in (line.partition(" ") for line in record) if int(number) == project}
    right = any(name in answer.text for name in names)
    states = Counter(f"chunks_{chunk.cache}" for chunk in answer.report.chunks)
    return Counter({f"{kind}_asked": 1, f"{kind}_right": int(right)}) + states


def run_all(place: Place, minutes: float) -> dict[str, Any]:
    """Let all processes run; what each kind of them has seen, and those that failed."""
    until = time.time() + 60 * minutes
    roles = [*(("ingest", n) for n in range(INGESTING)), ("remove", 0), *(("ask", n) for n in range(ASKING))]
    failed = []
    with ProcessPoolExecutor(len(roles), mp_context=get_context("spawn")) as pool:
        running = [pool.submit(work, str(place.root), role, number, until) for role, number in roles]
        for (role, number), one in zip(roles, running, strict=True):
            if (error := one.exception()) is not None:
                failed.append(f"{role} {number}: {type(error).__name__}: {error}")
    seen = {role: Counter[str]() for role, _ in roles}
    for role, number in roles:
        if place.log(f"{role}{number}").exists():
            seen[role].update(json.loads(place.log(f"{role}{number}").read_text()))
    return {"processes": len(roles), "failed": failed, **{role: dict(counted) for role, counted in seen.items()}}


def examine(place: Place) -> dict[str, Any]:
    """What is left: each document removed for good, all ingested once more, and held against one process's work."""
    found = verify(place.index)
    shutil.rmtree(place.root / "pages" / _GONE)
    with RagCache.open(place.index, model="bundled") as rag:
        again = rag.ingest(place.root / "pages", prune=True)
        answers = ask_every(place, rag)
    collect_garbage(place.index)
    alone = place.root / "alone"
    alone.mkdir(mode=0o700)
    shutil.copyfile(place.index / "secret", alone / "secret")  # so that its files have the same names
    with RagCache.open(alone, model="bundled") as rag:
        rag.ingest(place.root / "pages")
        expected = ask_every(place, rag)
    last = verify(place.index)
    return {
        "verified_at_once": list(found.next),
        "then_added_or_changed": again.added + again.changed,
        "sound_at_the_end": last.sound,
        "documents": last.documents,
        "kv_files": last.blobs,
        "kv_files_of_one_process": verify(alone).blobs,
        "kv_files_differ": len(names_of(place.index) ^ names_of(alone)),
        "answers_differ": sum(one != other for one, other in zip(answers, expected, strict=True)),
        "answers": len(answers),
    }


def names_of(index: Path) -> set[str]:
    """The KV files of an index."""
    return {file.name for file in index.glob("kv/??/*.safetensors")}


def ask_every(place: Place, rag: RagCache) -> Sequence[str]:
    """The answers about every project, those of removed pages too."""
    short = Sampling(max_new_tokens=12)
    return [rag.ask(f"Who leads the {name.title()} project?", sampling=short).text for name in PROJECTS]


def main(
    minutes: Annotated[float, typer.Option(help="How long the processes run.")] = 10,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("many-processes.json"),
) -> None:
    """Run all processes at once, then look at what they have left."""
    os.environ["RAGCACHE_CALIBRATE"] = "0"  # or pages as short as these might be prefilled
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for project in range(len(PROJECTS)):
            write_page(place, project, 0)
        with RagCache.open(place.index, model="bundled") as rag:
            rag.ingest(place.root / "pages")
        result = run_all(place, minutes) | {"left": examine(place)}
    write(out, {"meta": report.meta(device=torch.device("cpu"), minutes=minutes), **result})
    typer.echo(json.dumps(result, indent=1))
    left = result["left"]
    clean = left["sound_at_the_end"] and not left["kv_files_differ"] and not left["answers_differ"]
    sys.exit(0 if clean and not result["failed"] else 1)


if __name__ == "__main__":
    typer.run(main)
