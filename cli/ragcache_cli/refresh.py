"""`ragcache refresh`: chunks whose neighbours are others by now are fused anew."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from ragcache_cli.opening import check_methods, open_index
from ragcache_cli.options import DEFAULT_INDEX, Adapter, AsJson, Device, Dtype, Embedder, FusedMethods, IndexPath, Model
from ragcache_cli.terminal import duration, note, progress, say, say_json, size

if TYPE_CHECKING:
    from ragcache.report import IngestReport


def refresh(
    index: IndexPath = DEFAULT_INDEX,
    method: FusedMethods = None,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Make KV anew that was fused with other chunks than it would be today, whoever brought the chunks.

    A chunk's neighbours are found when its KV is made, so chunks that come first know nothing of those that come later.
    `ragcache store stats` counts them. What is missing is made, too; a run that was stopped resumes.
    """
    check_methods(method)
    with open_index(index, model=model, adapter=adapter, embedder=embedder, dtype=dtype, device=device) as rag:
        if rag.model_note:
            note(rag.model_note)
        with progress() as bars:
            done = rag.refresh(methods=method, progress=bars)
        if as_json:
            say_json({"index": str(index), "model": rag.reader.name, **asdict(done)})
        else:
            _show(done)


def _show(done: "IngestReport") -> None:
    encoded = ", ".join(f"{count:,} {recipe}" for recipe, count in done.encoded.items()) or "nothing was out of date"
    say(f"encoded: {encoded} \u00b7 {size(done.bytes)} in all \u00b7 {duration(done.seconds)}")
