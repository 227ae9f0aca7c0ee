"""`ragcache finetune`: a model is trained to read chunks whose KV was made apart."""

from pathlib import Path
from typing import Annotated, Any

import typer
from ragcache_cli.options import AsJson
from ragcache_cli.terminal import duration, note, progress, say, say_json


def finetune(
    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="turborag, turborag-composite, block-attention, kvlink, or full: the control."
        ),
    ],
    model: Annotated[str, typer.Option(metavar="NAME", help="Hub id or folder of the model to train, or smollm2.")],
    data: Annotated[
        str,
        typer.Option(
            metavar="FILE|INDEX|worlds",
            help='JSONL of {"question", "answers", "chunks"}; an index, with --questions; or worlds: invented ones.',
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the adapter; a run that was stopped resumes there.")
    ],
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions with answers to an index, JSONL as `ragcache bench` reads it."),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSONL to examine by; without it some contexts of --data are held out."),
    ] = None,
    links: Annotated[
        int | None, typer.Option(metavar="M", help="Link tokens a chunk, 0, 1 or 5, of the recipe kvlink.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Optimiser steps.")] = 300,
    batch: Annotated[int, typer.Option(metavar="N", help="Contexts a step.")] = 4,
    rate: Annotated[float, typer.Option(metavar="R", help="Learning rate at its height.")] = 5e-4,
    seed: Annotated[int, typer.Option(metavar="S", help="Of new weights and of the order of contexts.")] = 0,
    rank: Annotated[int, typer.Option(metavar="R", help="Of LoRA's matrices, on all linear layers.")] = 8,
    full_weights: Annotated[
        bool, typer.Option("--full-weights", help="Train all weights instead: small models only.")
    ] = False,
    dtype: Annotated[
        str,
        typer.Option(metavar="NAME", help="auto, float32 or bfloat16; auto is what this processor multiplies faster."),
    ] = "auto",
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="Compute layers twice to hold the activations of one.")
    ] = False,
    every: Annotated[
        int, typer.Option(metavar="N", help="Steps between checkpoints, each with a look at held-out questions.")
    ] = 50,
    held_out: Annotated[int, typer.Option(metavar="N", help="Contexts to examine by, at most.")] = 12,
    top_k: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Chunks to retrieve; else the index's own number.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="T", help="CPU threads; without it torch's own number.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model to read chunks that were prefilled apart, by LoRA, and write an adapter with its card.

    Training sees what answering sees: ragcache's own prompt, the mask and the positions of the recipe; the loss is on
    the answers alone. The folder then goes to `--adapter`. A run that was stopped goes on from its last checkpoint.
    """
    given = {**locals()}
    for name in ("threads", "as_json"):
        del given[name]
    _run(given, threads, as_json)


def _run(given: dict[str, Any], threads: int | None, as_json: bool) -> None:
    from ragcache.retrieve.needs import needs
    from ragcache_finetune.settings import Settings

    settings = Settings(**given)
    with needs("finetune"):
        import accelerate  # noqa: F401
        import peft  # noqa: F401

    import torch

    from ragcache_finetune.run import finetune as train

    if threads is not None:
        torch.set_num_threads(threads)
    with progress() as shown:
        report = train(settings, note=note, progress=shown)
    if as_json:
        say_json(report)
        return
    said = f"{report['recipe']}: {report['steps']} steps in {duration(report['seconds'])}, loss {report['loss']}"
    say(f"{said}; {_examined(report)}")
    note(f"wrote {settings.out}; answer with {'--model' if settings.full_weights else '--adapter'} {settings.out}")


def _examined(report: dict[str, Any]) -> str:
    if not report["answered_after"]:
        return "no held-out questions (--validation FILE, --held-out N), so none were examined"
    before, after = (
        ", ".join(f"{share} ({mask} mask)" for mask, share in report[name].items())
        for name in ("answered_before", "answered_after")
    )
    return f"held-out questions answered {before} before, {after} after"
