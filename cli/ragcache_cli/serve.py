"""`ragcache serve`: an OpenAI-compatible server over an index, by this project's own engine or by vLLM."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcache_cli.opening import open_index
from ragcache_cli.options import (
    DEFAULT_INDEX,
    Adapter,
    Device,
    Dtype,
    Embedder,
    IndexPath,
    Model,
    OwnMethod,
    Rerank,
    Retrieve,
)
from ragcache_cli.terminal import note
from ragcache_cli.vllm_engine import KEY, check_engine_options, serve_with_vllm

if TYPE_CHECKING:
    from openai_ragcache import Tenants

    from ragcache.rag import RagCache

#: How the command is registered: options that it does not know are vLLM's.
TAKES_OTHERS = {"allow_extra_args": True, "ignore_unknown_options": True}
_MIB = 1 << 20
#: Parameters that only one of the engines has.
_ONLY = {
    "ragcache": (
        "keys queue max_prompt_tokens max_tokens max_body max_upload verify least_agreement fall_back learn "
        "ingest_embedded retrieve rerank adapter embedder device"
    ).split(),
    "vllm": ["tensor_parallel", "memory", "dry_run"],
}


def serve(
    ctx: typer.Context,
    index: IndexPath = DEFAULT_INDEX,
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on; 0 for any that is free.")] = 8000,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="API keys, a line each: KEY FOLDER, where the folder is the tenant's index; takes the place of "
            "--index. One key for --index is read from the environment variable RAGCACHE_API_KEY.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What clients call the model; without it, its own name.")
    ] = "",
    queue: Annotated[
        int, typer.Option(metavar="N", help="Most requests that wait; the next is refused with 429.")
    ] = 32,
    max_prompt_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens of a prompt; without it what the model takes.")
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", help="Most tokens of an answer, where a request does not say.")
    ] = 512,
    max_body: Annotated[int, typer.Option(metavar="MIB", help="Largest request body.")] = 4,
    max_upload: Annotated[int, typer.Option(metavar="MIB", help="Largest file that is uploaded.")] = 64,
    verify: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of the answers that full prefill repeats when the engine is idle, such as 0.02.",
        ),
    ] = 0.0,
    least_agreement: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of those that it should confirm; below it, answers say so.")
    ] = 0.9,
    fall_back: Annotated[
        bool, typer.Option("--fall-back", help="Below that, answer by full prefill until reuse agrees with it again.")
    ] = False,
    learn: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="MIB",
            help="Memory, for each tenant, for KV of texts that are no document's and come a second time elsewhere.",
        ),
    ] = 0,
    ingest_embedded: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="MIB",
            help="Most KV, for each tenant, of chunks that come to /v1/embeddings, made while the engine is idle.",
        ),
    ] = 0,
    retrieve: Retrieve = None,
    rerank: Rerank = None,
    method: OwnMethod = None,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What answers: ragcache, this project's own engine, one request at a time; or vllm, for many users: "
            "its own server, which then takes every option of vLLM that is not named here.",
        ),
    ] = "ragcache",
    tensor_parallel: Annotated[
        int, typer.Option(min=1, metavar="N", help="vllm: over how many GPUs each layer is spread.")
    ] = 1,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="vllm: most KV of the index that a worker keeps in memory (1GiB without it)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="vllm: check, print the command that would be run, and start nothing.")
    ] = False,
) -> None:
    """Serve an index over HTTP, as OpenAI's API has it: any front end gets reuse by changing a URL.

    Chunks of the index are found in every prompt, in any order. Without a key only this machine may connect. Needs the
    extra `serve`, or with --engine vllm the extra `vllm`. Ctrl-C stops it, and lets answers end that were begun.
    """
    check_engine_options(ctx, engine, _ONLY)
    if engine == "vllm":
        serve_with_vllm(
            index, ctx.args, host=host, port=port, name=name, method=method, model=model, dtype=dtype,
            tensor_parallel=tensor_parallel, memory=memory, dry_run=dry_run,
        )  # fmt: skip
        return
    from openai_ragcache.listening import bind
    from openai_ragcache.settings import ServerSettings
    from openai_ragcache.tenants import Tenants, read_keys

    settings = ServerSettings(
        host=host,
        port=port,
        model=name,
        queue=queue,
        max_body_bytes=max_body * _MIB,
        max_upload_bytes=max_upload * _MIB,
        max_prompt_tokens=max_prompt_tokens,
        max_tokens=max_tokens,
        verify=verify,
        least_agreement=least_agreement,
        fall_back=fall_back,
        ingest_embedded_bytes=ingest_embedded * _MIB,
    )
    key = os.environ.get(KEY, "")
    settings.check_exposure(has_keys=bool(keys or key))
    how: dict[str, Any] = {
        "retriever": retrieve,
        "reranker": rerank,
        "method": method,
        "adapter": adapter,
        "embedder": embedder,
    }
    how |= {"dtype": dtype, "device": device, "second_sight_bytes": learn * _MIB}
    with bind(host, port) as sockets:  # before the model is loaded, since it may be refused
        tenants = (
            Tenants.of_one(open_index(index, create=True, model=model, **how), key)
            if keys is None
            else _open_tenants(read_keys(keys), model, how)
        )
        from openai_ragcache.running import run  # torch comes with it, and is here by now in the lean way

        run(tenants, settings, lambda url: _tell(url, tenants), sockets)


def _open_tenants(folders: dict[str, Path], model: str | None, how: dict[str, Any]) -> "Tenants":
    """Each key's index, opened once, on one model."""
    from openai_ragcache.tenants import Tenant, Tenants

    opened: dict[Path, RagCache] = {}
    shared: Any = model
    for folder in folders.values():
        if folder.absolute() not in opened:
            rag = open_index(folder, create=True, model=shared, **how)
            shared, how = rag.reader, {**how, "adapter": None}
            opened[folder.absolute()] = rag
    tenants = {path: Tenant(rag) for path, rag in opened.items()}
    return Tenants({key: tenants[folder.absolute()] for key, folder in folders.items()})


def _tell(url: str, tenants: "Tenants") -> None:
    rag = tenants.all[0].rag
    known = f"{len(tenants.all)} tenants" if len(tenants.all) > 1 else f"{rag.stats()['chunks']:,} chunks"
    note(f"{rag.reader.label} answers at {url} over {known}; Ctrl-C stops it")
    if rag.model_note:
        note(rag.model_note)
