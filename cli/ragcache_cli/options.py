"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer


def find_path(place: "str | Path | None") -> Path | None:
    """The path that was named, if one was; a callback, since what a parser refuses is said as a wrong usage."""
    from ragcache.checks import check_not_blank

    if place is None:
        return None
    check_not_blank(place)
    return Path(place)


def path_argument(metavar: str, about: str) -> typer.models.ArgumentInfo:
    """An argument that names a file or a folder; a blank one is refused."""
    argument: typer.models.ArgumentInfo = typer.Argument(metavar=metavar, parser=str, callback=find_path, help=about)
    return argument


def find_paths(places: "list[str] | None") -> list[Path]:
    """The paths that were named."""
    return [path for place in places or () if (path := find_path(place))]


def _find_index(place: "str | Path") -> Path | None:
    """The folder of an index; of one that is published at a URL, this machine's copy, brought up to date."""
    if "://" not in str(place):
        return find_path(place)
    from ragcache.index.publication import local_copy
    from ragcache_cli.terminal import note, parse_size

    budget = os.environ.get("RAGCACHE_DISK_CACHE")
    return local_copy(place, max_bytes=None if budget is None else parse_size(budget), tell=note)


IndexPath = Annotated[
    Path,
    typer.Option(
        "--index",
        metavar="DIR",
        parser=str,
        callback=_find_index,
        help="Folder of the index, or the URL that it is published at, such as s3://bucket/prefix.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Hub id, folder or GGUF file of the model, or smollm2-tuned, a small one to try out; without it the "
        "index's own, else what RAGCACHE_MODEL names, else smollm2-tuned if it is installed, else the built-in test "
        "model.",
    ),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        "--adapter",
        metavar="DIR",
        help="Folder of a LoRA adapter, as PEFT writes it, to merge into the model; without it the index's own.",
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="Hub id or folder of a sentence-transformers model; without it the index's own, else all-MiniLM-L6-v2.",
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="NAME",
        help="What the model computes in: auto, float32, bfloat16 or float16; without it the index's own, else the "
        "checkpoint's.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where the model computes, such as cpu or cuda:1; without it on a GPU, if there is one.",
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Make what this row of `ragcache methods` loads; may be given several times. "
        "Without it the index's own method.",
    ),
]
FusedMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Look at what this row of `ragcache methods` loads; may be given several times. Without it at all that "
        "the index holds.",
    ),
]
TopK = Annotated[
    int | None, typer.Option("--top-k", metavar="N", help="Chunks to retrieve; without it the index's own number.")
]
Retrieve = Annotated[
    str | None,
    typer.Option(
        "--retrieve",
        metavar="HOW",
        help="How chunks are found: dense, by vectors; hybrid, by those and words (default); iterative, by those "
        "and their sentences, and again with the best of them.",
    ),
]
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="NAME",
        help="Hub id or folder of a cross-encoder that puts the chunks in their final order.",
    ),
]
OwnMethod = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help="A row of `ragcache methods`; without it the index's own."),
]
Auxiliary = Annotated[
    str | None,
    typer.Option(
        "--auxiliary",
        metavar="NAME",
        help="Hub id or folder of the small model that chooses tokens for the method cacheclip, smollm2, or "
        "sibling-tuned, which is tuned to choose; without it the built-in test model's sibling. Both siblings fit that "
        "model alone.",
    ),
]
Recompute = Annotated[
    float | None,
    typer.Option(metavar="R", help="Share of the reused tokens to recompute, 0 to 1; without it the method's own."),
]
MaxNewTokens = Annotated[int | None, typer.Option(metavar="N", help="Most tokens of the answer (128 without it).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout instead of text.")]

DEFAULT_INDEX = Path("index")
