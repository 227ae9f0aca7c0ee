"""`ragcache adopt`: KV for chunks that another program embedded."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragcache_cli.ingest import opened, show, with_progress
from ragcache_cli.opening import check_methods
from ragcache_cli.options import (
    DEFAULT_INDEX,
    Adapter,
    AsJson,
    Device,
    Dtype,
    Embedder,
    IndexPath,
    Methods,
    Model,
    path_argument,
)
from ragcache_cli.terminal import note, say_json


def adopt(
    folder: Annotated[Path, path_argument("DIR", "A Chroma folder: LangChain's persist_directory.")],
    collection: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its collection; needed where there are several.")
    ] = None,
    index: IndexPath = DEFAULT_INDEX,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    method: Methods = None,
    as_json: AsJson = False,
) -> None:
    """Prefill what a Chroma collection holds already, as LangChain, LlamaIndex or any other program filled it.

    The collection is only read. Run again, it catches up with what was added and removed there; a vector store that is
    wrapped by ragcache does that by itself, and adopts what other vector stores than Chroma hold.
    """
    check_methods(method)
    with opened(
        index, methods=method, model=model, adapter=adapter, embedder=embedder, dtype=dtype, device=device
    ) as rag:
        if rag.model_note:
            note(rag.model_note)
        done = with_progress(rag, method, lambda bars: rag.adopt(folder, collection, methods=method, progress=bars))
        if as_json:
            say_json({"index": str(index), "model": rag.reader.name, **asdict(done)})
        else:
            show(done, index, "entries")
