"""`ragcache doctor`: can this model's chunk KV be reused, and at what price?"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ragcache_cli.options import DEFAULT_INDEX, AsJson
from ragcache_cli.store import show_verified
from ragcache_cli.terminal import note, say, say_json, size, table
from ragcache_cli.vllm_engine import check_engine, examine_for_vllm

if TYPE_CHECKING:
    from ragcache.model.reader import Reader

SLOWER = 1.2  # times: what is worth a word


def doctor(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Hub id, folder or GGUF file of a model, smollm2-tuned, smollm2 or bundled; else the model of "
            "--index, or what RAGCACHE_MODEL names, or smollm2-tuned where it is installed.",
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option("--adapter", metavar="DIR", help="Folder of a LoRA adapter, as PEFT writes it, to merge into it."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="Folder of an index: look at it first, at what `ragcache certify` has found, and at its own model.",
        ),
    ] = None,
    config_only: Annotated[
        bool,
        typer.Option(
            "--config-only", help="Judge by the model's configuration; nothing else of it is read or fetched."
        ),
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="For which engine: ragcache, this project's own; or vllm: whether that can serve the index, and by "
            "which methods; loads no model.",
        ),
    ] = "ragcache",
    as_json: AsJson = False,
) -> None:
    """Probe a model's rotary layout, check reuse against stock full prefill, and measure what reuse changes.

    With --index the catalogue's rows, and which KV files and vectors there are, are checked first, as `ragcache store
    verify` does, which reads the files, too.

    The last line is the verdict: whether the model works with ragcache, and in how many built-in questions reuse by the
    default changes the first token. With --config-only a reduced copy of the model, with random weights, stands for it.

    Ends with exit code 2 and the reason if the model cannot reuse KV, with 1 if
    recomputing everything is not full prefill; `ingest --method full` may still have it answer by full prefill. With
    --engine vllm it ends with 1 if vLLM cannot serve the index.
    """
    from ragcache.errors import InvalidArgument

    check_engine(engine)
    if engine == "vllm":
        if config_only:
            raise InvalidArgument("--config-only asks this project's own engine; leave it or --engine vllm out")
        examine_for_vllm(index or DEFAULT_INDEX, model, as_json=as_json)
        return
    from ragcache.index.settings import settings_of
    from ragcache.index.verify import summarise
    from ragcache.model.checkpoint import default_model
    from ragcache.model.loading import load_reader

    if config_only:
        _judge_config(model, with_others=bool(index or adapter), as_json=as_json)
        return
    looked = summarise(index) if index else None
    certified = _read_certificates(index) if index else []
    if looked and not as_json:
        show_verified(looked)
    if index and not model:
        known = settings_of(index)
        model, adapter = known.get("name"), adapter or known.get("adapter")
    findings = {**_examined(load_reader(model or default_model(), adapter=adapter)), "certificates": certified}
    if looked:
        findings["index"] = {**asdict(looked), "sound": looked.sound}
    if as_json:
        say_json(findings)
    else:
        _show(findings)
    if not findings["full_recompute"]["passed"]:
        note(
            "recomputing everything does not give full prefill's logits; to have this model answer by it, run "
            f"`ragcache ingest PATH… --model {quote(findings['model'])} --method full --index DIR` into a new index"
        )
        raise typer.Exit(1)


def _judge_config(model: str | None, *, with_others: bool, as_json: bool) -> None:
    from ragcache.errors import InvalidArgument
    from ragcache.model.checkpoint import default_model
    from ragcache.model.config_check import check_config_alone
    from ragcache.model.cost import gigabytes_per_1000_pages
    from ragcache.model.loading import checkpoint_of
    from ragcache.model.pretrained import packages_for

    if with_others:
        raise InvalidArgument("--config-only looks at a model's configuration alone; leave --index and --adapter out")
    name = model or default_model()
    check = check_config_alone(checkpoint_of(name))
    found = {"model": name, **asdict(check)}
    found["gigabytes_per_1000_pages"] = gigabytes_per_1000_pages(check.bytes_per_token)
    if as_json:
        say_json(found)
        return
    say(f"{name}: {check.architecture}, {check.dtype}, by its configuration alone")
    if check.quantization:
        say(f"its weights are quantised by {check.quantization}: `pip install {packages_for(check.quantization)}`")
    say(f"prompt and answer take at most {check.limit:,} tokens")
    say(
        f"KV: {check.bytes_per_token:,} bytes a token, {found['gigabytes_per_1000_pages']:,.1f} GB per 1,000 pages "
        "of 500 tokens"
    )
    say(
        "works: a reduced copy of it, with random weights, gives full prefill's logits, recomputed and from a reused "
        "chunk; loading it checks its own weights"
    )


def _examined(reader: "Reader") -> dict[str, Any]:
    from ragcache.model.cost import gigabytes_per_1000_pages
    from ragcache_bench.doctor import check_full_recompute, dtype_slowdown, judge, ladder, layer_groups

    check, rungs = check_full_recompute(reader), ladder(reader)
    return {
        "model": reader.name,
        "adapter": reader.adapter,
        "tuning": asdict(reader.tuning) if reader.tuning else None,
        "architecture": type(reader.model).__name__,
        "dtype": str(reader.model.dtype).removeprefix("torch."),
        "dtype_slowdown": dtype_slowdown(reader),
        "device": str(reader.device),
        "limit": reader.limit,
        "bytes_per_token": reader.bytes_per_token,
        "bytes_per_chunk": reader.bytes_per_chunk,
        "gigabytes_per_1000_pages": gigabytes_per_1000_pages(reader.bytes_per_token),
        "free_bytes": shutil.disk_usage(Path.cwd()).free,
        "layers": [asdict(group) for group in layer_groups(reader)],
        "full_recompute": {**asdict(check), "passed": check.passed},
        "ladder": [{**asdict(rung), "same_token": not rung.changed} for rung in rungs],
        "verdict": asdict(judge(check, rungs)),
    }


def _show(found: dict[str, Any]) -> None:
    say(f"{found['model']}: {found['architecture']}, {found['dtype']} on {found['device']}")
    if (found["dtype_slowdown"] or 0) > SLOWER:
        say(
            f"this processor multiplies {found['dtype']} {found['dtype_slowdown']:.1f} times more slowly than float32: "
            'RagCache.open(..., dtype="float32") reads prompts sooner, in a new index and for twice the memory'
        )
    if found["tuning"]:
        say(f"tuned by the recipe {found['tuning']['recipe']}: `ragcache methods` says which row reads as it was tuned")
    say(f"prompt and answer take at most {found['limit']:,} tokens")
    say(
        f"KV: {found['bytes_per_token']:,} bytes a token, {found['gigabytes_per_1000_pages']:,.1f} GB per 1,000 pages "
        f"of 500 tokens; {size(found['free_bytes'])} are free on this disk"
    )
    if found["bytes_per_chunk"]:
        from ragcache.model.cost import tokens_to_outweigh_states

        even = tokens_to_outweigh_states(found["bytes_per_chunk"], found["bytes_per_token"])
        say(
            f"layers that carry a state take {size(found['bytes_per_chunk'])} of each chunk besides, whatever its "
            f"length: as much as KV of {even:,} tokens, so long chunks (--chunk-tokens) take less room in all"
        )
    table(
        ("layers", "rotary layout", "rotated dims", "from dim", "slowest rad/token"),
        [(_ranges(g["layers"]), g["pairing"], g["dims"], g["offset"], g["slowest"]) for g in found["layers"]],
    )
    check = found["full_recompute"]
    say(
        f"recompute everything = full prefill: {'yes' if check['passed'] else 'NO'} (largest difference of a logit "
        f"{check['difference']:.1e}, allowed {check['tolerance']:.1e})"
    )
    table(
        ("built-in questions, answered from", "KL to full prefill, first token", "another first token"),
        [(r["name"], f"{r['kl']:.5f}", f"{r['changed']} of {r['questions']}") for r in found["ladder"]],
    )
    for one in found["certificates"]:
        say(
            f"certified over the index, {one['model']} by {one['method']}, KV written as {one['codec']}: full prefill "
            f"confirmed {one['confirmed']} of {one['questions']} answers "
            f"(95 % interval {one['low']:.0%} to {one['high']:.0%})"
            + (f"; {one['outdated']}, run `ragcache certify` again" if one["outdated"] else "")
        )
    say(found["verdict"]["words"])


def _read_certificates(index: Path) -> list[dict[str, Any]]:
    """What was certified over an index, and what has changed since; loads no model."""
    from ragcache.engine.certificate import Certificate
    from ragcache.index.documents import Documents

    with Documents.opened(index) as documents:
        edition = documents.edition
    return [
        {**asdict(one), "outdated": "" if one.edition == edition else "its documents have changed since"}
        for one in Certificate.read_all(index)
    ]


def _ranges(layers: Sequence[int]) -> str:
    """0, 1, 2, 5 as 0-2, 5."""
    runs = [[n for _, n in run] for _, run in groupby(enumerate(layers), key=lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
