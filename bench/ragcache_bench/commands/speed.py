"""What the commands share that time shapes or checkpoints: the reader, the peers, and how results are written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcache_bench.commands.options import known, show, split, use_threads, write

if TYPE_CHECKING:
    from ragcache.model.reader import Reader
    from ragcache_bench.speed.peers import MakePeers, Peer
    from ragcache_bench.speed.peers.gguf import Precision

ModelShape = Annotated[str, typer.Option(metavar="NAME", help="Sizes of a published model, or a checkpoint.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="DTYPE", help="float32, bfloat16 or float16.")]
Device = Annotated[str, typer.Option("--device", metavar="DEVICE", help="cuda or cpu; without it CUDA if there.")]
Store = Annotated[str, typer.Option(metavar="WHERE", help="Where our KV is: memory, warm or cold files.")]
Repeats = Annotated[int, typer.Option(min=1, metavar="N", help="Paired measurements of each.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the JSON to a file too, and a table beside it.")]
Peers = Annotated[
    str,
    typer.Option(metavar="A,B", help="Of prefix-cache, contextpilot, llama.cpp:q8_0, llama.cpp:bf16, llama.cpp:f32."),
]
_LLAMA: "dict[str, Precision]" = {"llama.cpp:q8_0": "q8_0", "llama.cpp:bf16": "bf16", "llama.cpp:f32": "f32"}


def shaped(shape: str, dtype: str, device: str, threads: int | None) -> "Reader":
    """A reader of a shape with random weights, or of a checkpoint's, which a hub id or a folder names."""
    import torch

    from ragcache_bench.speed.shapes import SHAPES, checkpoint_reader, random_reader

    precision = known(dtype, {name: getattr(torch, name) for name in ("bfloat16", "float16", "float32")})
    use_threads(threads)
    if shape not in SHAPES and ("/" in shape or Path(shape).is_dir()):
        return checkpoint_reader(shape, dtype=dtype, device=device)
    kind, sizes = known(shape, SHAPES)
    return random_reader(kind, sizes, dtype=precision, device=device)


def place(name: str) -> str:
    """Where our KV is, if there is such a place."""
    from ragcache_bench.speed.runners import STORES

    return str(known(name, {one: one for one in STORES}))


@contextmanager
def peers(names: str, reader: "Reader", capacity: int, *, orders: bool) -> "Iterator[MakePeers]":
    """What people run instead, by name, made anew for each limit of what they may hold.

    Parameters
    ----------
    names : str
        With commas between.
    reader : Reader
        Whose weights they have.
    capacity : int
        Tokens of the longest prompt.
    orders : bool
        Whether a prefix cache also takes part at its best, with chunks that keep their order; llama.cpp's then does
        only so.
    """
    import torch

    from ragcache.errors import InvalidArgument
    from ragcache_bench.speed.peers import PrefixCache, SameOrder
    from ragcache_bench.speed.peers.contextpilot import OrderedByContextPilot

    for name in split(names):
        known(name, dict.fromkeys(("prefix-cache", "contextpilot", *_LLAMA)))
    with ExitStack() as stack:

        def llama(name: str) -> "list[Peer]":
            from ragcache_bench.speed.peers.llama import LlamaCold, LlamaRestored, LlamaSpliced, contexts

            if reader.device.type != "cpu":
                raise InvalidArgument("llama.cpp runs on the CPU here; compare with it on --device cpu")
            long, short = stack.enter_context(contexts(reader, _LLAMA[name], capacity, threads=torch.get_num_threads()))
            called = f"llama.cpp {_LLAMA[name]}"
            restored = f"{called}, restored prefix"
            return [
                LlamaCold(long, called),
                SameOrder(LlamaRestored(short, restored)) if orders else LlamaRestored(long, restored),
                LlamaSpliced(short, f"{called}, spliced chunks"),
            ]

        def make(limit: int | None) -> "list[Peer]":
            found: list[Peer] = []
            for name in split(names):
                if name == "prefix-cache":
                    found.append(PrefixCache(reader, limit))
                    found += [SameOrder(PrefixCache(reader, limit))] if orders else []
                elif name == "contextpilot":
                    found.append(OrderedByContextPilot(PrefixCache(reader, limit)))
                elif limit is None:
                    found += llama(name)
                else:
                    raise InvalidArgument(f"{name} has no limit on what it keeps; leave out either it or --cache-sizes")
            return found

        yield make


def finish(
    reader: "Reader",
    rows: Sequence[Any],
    columns: Sequence[str],
    out: Path | None,
    *,
    as_json: bool,
    more: Mapping[str, Any] | None = None,
    **given: Any,
) -> None:
    """Print a run's rows, and write them as JSON with a table beside it; its meta says what was `given`."""
    from ragcache_bench import report
    from ragcache_bench.markdown import made_by, table
    from ragcache_bench.speed.machine import instructions

    meta = report.meta(**report.about_reader(reader), instructions=instructions(), **given)
    content = {"meta": meta, "rows": [vars(row) for row in rows], **(more or {})}
    if out is not None:
        write(out, content)
        lines = [[row[name] for name in columns] for row in content["rows"]]
        out.with_suffix(".md").write_text(f"{made_by(meta)}\n{table(columns, lines)}", encoding="utf-8")
    show(content, columns, as_json=as_json)
