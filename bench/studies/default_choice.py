"""What did each share bring, question by question, where the default's share was chosen? From the runs' own answers.

`left_contexts.py` asked the validation questions twice: as KV is (`--compare contexts`) and with shares recomputed
(`--compare layers`). This pairs the two runs' answers, from the `.jsonl` that stands beside each table:

    python bench/studies/default_choice.py XQuAD=contexts-xquad.jsonl:layers-xquad.jsonl --out default-choice.json
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from ragcache_bench.commands.options import write

AS_IS, RECOMPUTED = "in-document, as it is", "in-document, every layer"
_Key = tuple[str, str]


def answers(lines: Iterable[str]) -> dict[tuple[str, float | None], dict[_Key, float]]:
    """By method and share: whether each question's reply holds an accepted answer."""
    found: dict[tuple[str, float | None], dict[_Key, float]] = {}
    for row in map(json.loads, lines):
        found.setdefault((row["method"], row["recompute"]), {})[row["task"], row["id"]] = row["sub_em"]
    return found


def paired(name: str, as_is: Iterable[str], recomputed: Iterable[str]) -> Iterator[dict[str, Any]]:
    """A row a share, over the questions that it and KV as it is were both asked."""
    first, second = answers(as_is), answers(recomputed)
    kept = first[AS_IS, None]
    for (method, share), replies in second.items():
        both = sorted(kept.keys() & replies.keys())
        if method == RECOMPUTED and both:
            yield {
                "set": name, "recompute": share, "n": len(both),
                **{label: _mean(first[row, None], both) for label, row in (("full", "full"), ("naive", "naive"))},
                "as_is": _mean(kept, both), "recomputed": _mean(replies, both),
                "came_right": sum(replies[one] > kept[one] for one in both),
                "went_wrong": sum(replies[one] < kept[one] for one in both),
            }  # fmt: skip


def _mean(replies: dict[_Key, float], questions: list[_Key]) -> float:
    return sum(replies[one] for one in questions) / len(questions)


def main(
    runs: Annotated[
        list[str], typer.Argument(metavar="NAME=CONTEXTS:LAYERS", help="Answers of the two runs of a set.")
    ],
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("default-choice.json"),
) -> None:
    """Pair the runs, and write what each share brought."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        name, _, files = run.partition("=")
        contents = (Path(file).read_text(encoding="utf-8").splitlines() for file in files.split(":"))
        rows += paired(name, *contents)
    write(out, {"rows": rows})


if __name__ == "__main__":
    typer.run(main)
