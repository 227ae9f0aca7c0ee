"""The model card beside an adapter: on what it was trained, for how long, and what it lost elsewhere."""

from pathlib import Path
from typing import Any

from ragcache_finetune.files import write_whole
from ragcache_finetune.recipes import RECIPES

_READ = {
    "full": "Chunks see everything before them: the control.",
    "independent": "A chunk's tokens see their own chunk only; everything else sees all that stands before it.",
    "alternating": "Every context is read in turn in full, and with chunks that see themselves only.",
}


def write_card(folder: Path, report: dict[str, Any]) -> None:
    """Write README.md into an adapter's folder, in place of PEFT's own."""
    write_whole(folder / "README.md", card(report))


def card(report: dict[str, Any]) -> str:
    """The card as Markdown."""
    paper = RECIPES[report["recipe"]].paper
    cost, training, held = report["ordinary"], report["training"], report["held_out"]
    trained = "all weights" if report["full_weights"] else f"LoRA of rank {report['rank']} on all linear layers"
    lines = [
        "---",
        f"base_model: {report['base']}",
        "library_name: peft",
        "---",
        "",
        f"# {report['base']}, trained to read chunks: {report['recipe']}",
        "",
        f"Made by `ragcache finetune --recipe {report['recipe']}`{f', after arXiv {paper}' if paper else ''}. "
        f"{_READ[report['attention']]}",
        "",
        "| | |",
        "|---|---|",
        f"| base | {report['base']} |",
        f"| trained | {trained} |",
        f"| attention, positions | {report['attention']}, {report['positions']} |",
        f"| link tokens | {report['links']} a document, for {report['documents']} documents |",
        f"| data | {report['data']}: {training['contexts']:,} contexts, {training['questions']:,} questions |",
        f"| steps | {report['steps']} of {report['batch']} contexts, rate {report['rate']:g}, seed {report['seed']} |",
        f"| time | {report['seconds'] / 60:.1f} minutes |",
        f"| loss at the end | {report['loss']} nats a token of the answers |",
        f"| held-out questions whose reply holds the answer ({held['questions']}) | {_answered(report)} |",
        f"| what it lost on ordinary prompts | {cost['nats_before']:.3f} nats a token before, {cost['nats_after']:.3f} "
        f"after: the base's own former replies to {cost['prompts']} prompts |",
        "",
        "The curve is in `curve.jsonl`, the record that ragcache reads in `ragcache_finetune.json`.",
        "",
    ]
    return "\n".join(lines)


def _answered(report: dict[str, Any]) -> str:
    if not report["answered_after"]:
        return "not examined"
    return f"{_shares(report['answered_before'])} before, {_shares(report['answered_after'])} after"


def _shares(answered: dict[str, float]) -> str:
    return ", ".join(f"{share:.3f} ({mask} mask)" for mask, share in answered.items())
