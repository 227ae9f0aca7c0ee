"""Random damage to every kind of file that an index has: each is found, or changes nothing that anybody is told.

    python bench/studies/damage.py --out docs/benchmarks/damage.json

A bit is flipped, a file is cut short, or two stretches of it change places. Then questions are asked of the damaged
index as any program would ask them, and `ragcache store verify` looks at it. Each piece of damage is replayed by its
seed. A process of its own asks, since a library that is handed broken bytes may end the whole program.
"""

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import write
from ragcache_bench.markdown import table

from ragcache import RagCache, Sampling
from ragcache.errors import RagCacheError
from ragcache.index.verify import verify
from ragcache.model.loading import load_reader
from ragcache.retrieve import Vectors

PROJECTS = """amber basil cedar delta ember fjord grove heron indigo jasper kestrel lotus maple nectar onyx pearl quartz
raven saffron thistle umber violet willow yarrow""".split()
LEADERS = "Mara Voss|Otto Lindt|Lena Kern|Hugo Abel|Nora Duarte|Ivan Moss".split("|")
QUESTIONS = tuple(f"Who leads the {name.title()} project?" for name in PROJECTS[:3])
_HEADER = 8  # bytes of a KV file's first field: how long its header is
_REWRITES = 50  # of every vector: Chroma writes its search graph behind a thousand changes


@dataclass(frozen=True)
class Region:
    """A part of an index: the files that have it, and where in a file it lies."""

    files: str
    part: Callable[[bytes], tuple[int, int]] = lambda data: (0, len(data))


REGIONS: Mapping[str, Region] = {
    "KV file: length of the header": Region("kv/??/*.safetensors", lambda data: (0, _HEADER)),
    "KV file: header": Region("kv/??/*.safetensors", lambda data: (_HEADER, _header_end(data))),
    "KV file: keys and values": Region("kv/??/*.safetensors", lambda data: (_header_end(data), len(data))),
    "catalogue": Region("catalog.sqlite"),
    "vectors: database": Region("vectors/chroma.sqlite3"),
    "vectors: search graph, vectors": Region("vectors/*/data_level0.bin"),
    "vectors: search graph, the rest": Region("vectors/*/[hil]*.*"),
    "secret": Region("secret"),
}


def _header_end(data: bytes) -> int:
    return _HEADER + int.from_bytes(data[:_HEADER], "little")


# -- damage ----------------------------------------------------------------------------------------------------------
def flip(data: bytearray, start: int, end: int, draw: random.Random) -> None:
    """Flip one bit."""
    data[draw.randrange(start, end)] ^= 1 << draw.randrange(8)


def truncate(data: bytearray, start: int, end: int, draw: random.Random) -> None:
    """Cut the file short somewhere in the region."""
    del data[draw.randrange(start, end) :]


def swap(data: bytearray, start: int, end: int, draw: random.Random) -> None:
    """Let two stretches of up to 64 bytes change places."""
    size = min(64, (end - start) // 2)
    first = draw.randrange(start, end - 2 * size + 1)
    second = draw.randrange(first + size, end - size + 1)
    data[first : first + size], data[second : second + size] = (
        data[second : second + size], data[first : first + size],
    )  # fmt: skip


KINDS = (flip, truncate, swap)


def damage(path: Path, region: str, seed: int) -> str:
    """Damage an index by one of three kinds; say which."""
    draw, where = random.Random(f"{region} {seed}"), REGIONS[region]
    kind = KINDS[seed % len(KINDS)]
    whole: list[Path] = sorted(file for file in path.glob(where.files) if file.stat().st_size)
    file = draw.choice(whole)
    data = bytearray(file.read_bytes())
    kind(data, *where.part(bytes(data)), draw)
    file.unlink()  # it may be a link to the sound one
    file.write_bytes(data)
    return kind.__name__


# -- what comes of it ------------------------------------------------------------------------------------------------
def make_index(path: Path) -> None:
    """An index of some pages, its search graph on the disk."""
    pages = path.with_name("pages")
    pages.mkdir()
    for number, name in enumerate(PROJECTS):
        said = f"The {name.title()} project is led by {LEADERS[number % len(LEADERS)]}. It began in spring."
        (pages / f"{name}.txt").write_text(said)
    with RagCache.open(path, model="bundled") as rag:
        rag.ingest(pages)
    vectors = Vectors(path / "vectors", "chunks")
    ids = vectors.ids()
    stored = vectors.embeddings(ids)
    for _ in range(_REWRITES):
        vectors.upsert(ids, stored)
    vectors.close()


@cache
def _reader() -> Any:
    torch.set_num_threads(1)
    return load_reader("bundled")


def ask(path: Path) -> Iterator[dict[str, Any]]:
    """What an index answers: words, the chunks that they come from, and the KV of each."""
    short = Sampling(max_new_tokens=8)
    with RagCache.open(path, model=_reader()) as rag:
        for question in QUESTIONS:
            answer = rag.ask(question, sampling=short)
            yield {
                "said": answer.text, "chunks": [(source.id, source.text) for source in answer.sources],
                "states": [chunk.cache for chunk in answer.report.chunks],
            }  # fmt: skip


def compare(sound: Path, place: Path, region: str, seed: int) -> tuple[str, str, str]:
    """Damage a copy; return the kind of damage, what the answers were, and whether `verify` named it."""
    shutil.copytree(sound, place, copy_function=_link)
    kind = damage(place, region, seed)
    expected = list(ask_sound(sound))
    try:
        found = list(ask(place))
        answered = _differ(found, expected)
    except RagCacheError:
        answered = "refused"
    except Exception as error:  # this is what is looked for
        answered = f"wrong: {type(error).__name__}"
    shutil.rmtree(place)
    shutil.copytree(sound, place, copy_function=_link)
    damage(place, region, seed)
    try:
        named = not verify(place).sound
    except RagCacheError:
        named = True
    shutil.rmtree(place)
    return kind, answered, "named" if named else "not named"


def _differ(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    """How answers differ. What is not loaded is computed, and said to be a miss: the words may be others, and right."""
    if found == expected:
        return "the same answers"
    texts = dict(chunk for answer in expected for chunk in answer["chunks"])
    for ours, theirs in zip(found, expected, strict=True):
        if any(texts.get(name, text) != text for name, text in ours["chunks"]):
            return "wrong: another text"
        if ours["said"] != theirs["said"] and all(ours[name] == theirs[name] for name in ("chunks", "states")):
            return "wrong: other words from the same KV"
    same = all(ours["chunks"] == theirs["chunks"] for ours, theirs in zip(found, expected, strict=True))
    return "a miss" if same else "other chunks"


@cache
def ask_sound(path: Path) -> tuple[dict[str, Any], ...]:
    """What the undamaged index answers."""
    return tuple(ask(path))


def _link(source: str, target: str) -> None:
    """KV files are never written to, so a link will do; the others are copied."""
    if source.endswith(".safetensors"):
        os.link(source, target)
    else:
        shutil.copyfile(source, target)


# -- all of it -------------------------------------------------------------------------------------------------------
def run_all(sound: Path, n: int) -> Iterator[tuple[str, str, str, str]]:
    """Every region, so often: its name, the kind of damage, the answers, and whether it was named."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    for region in REGIONS:
        for seed in range(n):
            place = sound.with_name(f"damaged-{len(region)}-{seed}")
            try:
                yield region, *pool.submit(compare, sound, place, region, seed).result()
            except BrokenProcessPool:
                yield region, KINDS[seed % len(KINDS)].__name__, "wrong: the process crashed", "not named"
                pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    pool.shutdown()


def is_harmful(answered: str, named: str) -> bool:
    """Whether damage did what it must not: a wrong answer, or other chunks and nobody to say why."""
    return answered.startswith("wrong") or (answered, named) == ("other chunks", "not named")


def main(
    n: Annotated[int, typer.Option(help="Pieces of damage to each of eight kinds of file.")] = 150,
    out: Annotated[Path, typer.Option(help="JSON to write; a page goes beside it.")] = Path("damage.json"),
) -> None:
    """Damage an index again and again, and count what comes of it."""
    os.environ["RAGCACHE_CALIBRATE"] = "0"  # or notes as short as these might be prefilled
    counted = Counter[tuple[str, str, str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "index"
        make_index(sound)
        for one in run_all(sound, n):
            counted[one] += 1
    names = ("region", "kind", "answers", "verify")
    rows: list[dict[str, Any]] = [dict(zip(names, one, strict=True)) | {"n": n} for one, n in counted.items()]
    harmful = sum(row["n"] for row in rows if is_harmful(row["answers"], row["verify"]))
    about = report.meta(device=torch.device("cpu"), n=n)
    write(out, {"meta": about, "damaged": counted.total(), "harmful": harmful, "rows": rows})
    out.with_suffix(".md").write_text(markdown(rows, harmful), encoding="utf-8")
    typer.echo(out.with_suffix(".md").read_text(encoding="utf-8"))
    raise typer.Exit(1 if harmful else 0)


def markdown(rows: list[dict[str, Any]], harmful: int) -> str:
    """The same for people: a row for each region and kind of damage."""
    ends = sorted({(row["answers"], row["verify"]) for row in rows})
    counted = {(row["region"], row["kind"], row["answers"], row["verify"]): row["n"] for row in rows}
    lines = [
        (region, kind.__name__, *(counted.get((region, kind.__name__, *end), 0) for end in ends))
        for region in REGIONS
        for kind in KINDS
    ]
    said = f"{sum(row['n'] for row in rows):,} pieces of damage, {harmful} of them harmful and not found."
    heads = ("file", "damage", *(f"{answers}, {named}" for answers, named in ends))
    return "\n\n".join(["# A damaged index", said, table(heads, lines)]) + "\n"


if __name__ == "__main__":
    typer.run(main)
