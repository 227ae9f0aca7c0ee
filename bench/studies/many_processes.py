"""One index, many processes: four ingest overlapping folders, one removes documents, two ask, at once.

    python bench/studies/many_processes.py --minutes 10 --out docs/benchmarks/many-processes.json

Pages say who manages what, in the words that the built-in model reads. Half of them stay as they are; the others are
rewritten all the time, each by one process and read by two. An answer is right if it is one that its page has given by
then. At the end catalogue, KV files and vectors are held against each other, and against what one process makes of the
same files.
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
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ragcache_bench.tasks import KNOWN

from ragcache import RagCache, Sampling
from ragcache.index.upkeep import collect_garbage
from ragcache.index.verify import verify

INGESTING, ASKING, PAGES = 4, 2, 10  # processes, processes, pages of a folder
_GONE = "gone"  # the folder whose documents are removed again and again


class Page(NamedTuple):
    """A passage, the question that it answers, and the name that is the answer."""

    text: str
    question: str
    name: str


@cache
def pages() -> Sequence[Page]:
    """A page for each manager, of the task `facts`."""
    found: dict[str, Page] = {}
    for example in KNOWN["facts"].examples(2000, seed=5):
        name = example.answers[0]
        texts = [text for text in example.chunks if name in text]
        if "manage" in example.question and len(texts) == 1:
            found.setdefault(name, Page(texts[0], example.question, name))
    return tuple(found.values())[: (INGESTING + 1) * PAGES]


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

    def page(self, number: int) -> Path:
        """The file of a page."""
        folder = number // PAGES
        name = _GONE if folder >= INGESTING else str(folder)
        return self.root / "pages" / name / f"{number}.txt"

    def log(self, role: str) -> Path:
        """Where a process writes what it has seen."""
        return self.root / f"{role}.json"


def write_page(place: Place, number: int, version: int) -> None:
    """Write a version of a page, at once and whole, after it was put on record."""
    page, name, file = pages()[number], name_in(number, version), place.page(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    with (place.root / "versions.txt").open("a") as record:
        record.write(f"{number} {name}\n")
    part = file.with_suffix(".part")
    part.write_text(page.text.replace(page.name, name))
    os.replace(part, file)


def name_in(number: int, version: int) -> str:
    """Who is named in a version of a page: at first its own name, later another page's."""
    return random.Random(f"{number} {version}").choice(pages()).name if version else pages()[number].name


def is_steady(number: int) -> bool:
    """Whether a page stays as it is."""
    return number % PAGES < PAGES // 2


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
    for page in draw.sample(changing, 2):
        write_page(place, page, draw.randrange(1, 1000))
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
    """Ask a page's question, and hold the answer against every version of it so far."""
    page = draw.randrange(INGESTING * PAGES)
    kind = "steady" if is_steady(page) else "changing"
    answer = rag.ask(pages()[page].question, sampling=Sampling(max_new_tokens=12))
    record = (place.root / "versions.txt").read_text().splitlines()
    names = {name for written, _, name in (line.partition(" ") for line in record) if int(written) == page}
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
        "steady": sum(map(is_steady, range(INGESTING * PAGES))),
        "steady_right_of_one_process": sum(
            pages()[number].name in expected[number] for number in range(INGESTING * PAGES) if is_steady(number)
        ),
    }


def names_of(index: Path) -> set[str]:
    """The KV files of an index."""
    return {file.name for file in index.glob("kv/??/*.safetensors")}


def ask_every(place: Place, rag: RagCache) -> Sequence[str]:
    """The answers to every question, those of removed pages too."""
    short = Sampling(max_new_tokens=12)
    return [rag.ask(page.question, sampling=short).text for page in pages()]


def main(
    minutes: Annotated[float, typer.Option(help="How long the processes run.")] = 10,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("many-processes.json"),
) -> None:
    """Run all processes at once, then look at what they have left."""
    os.environ["RAGCACHE_CALIBRATE"] = "0"  # or pages as short as these might be prefilled
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for number in range(len(pages())):
            write_page(place, number, 0)
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
