"""Which left context, which tokens and how many, on a model that people trained? Choices on validation questions.

The default was first chosen on the built-in test model. This asks a real one, SmolLM2, the questions by which its
tuning was validated: passages of one article (XQuAD), passages that stand alone (NQ-open), and our own tasks.

    python bench/studies/left_contexts.py --compare contexts --data xquad:runs/smollm2/validation/xquad-validation.json

What was chosen is examined on other questions: `--compare share`. `bench/recipes/default-smollm2.sh` has all runs.
"""

from pathlib import Path
from typing import Annotated

import typer
from ragcache_bench.commands import options
from ragcache_bench.commands.options import numbers
from ragcache_bench.commands.quality import Setup, chosen_tasks, on_tasks

from ragcache.encode import Alone, Encoder, Fused, InDocument
from ragcache.method import Method
from ragcache.select import QuestionAttention

EVERY = QuestionAttention(layers="all", reduce="mean")
LAST = QuestionAttention(layers="last", reduce="sum")
ENCODINGS: dict[str, Encoder] = {
    "alone": Alone(),
    "in-document": InDocument(),
    "fused, similar": Fused(10),
    "fused, both": Fused(10, by="both"),
}
UPPER = QuestionAttention(layers=(0.75, 0.8125, 0.875, 0.9375, -1), reduce="mean")
HALF = QuestionAttention(layers=(0.5, 0.625, 0.75, 0.875, -1), reduce="mean")
BY_CONTEXT = (
    *(Method(f"{name}, as it is", encoder) for name, encoder in ENCODINGS.items()),
    *(Method(f"{name}, every layer", encoder, EVERY, 0.15) for name, encoder in ENCODINGS.items()),
    *(Method(f"{name}, last layer", encoder, LAST, 0.15) for name, encoder in ENCODINGS.items()),
)
BY_LAYERS = tuple(
    Method(f"in-document, {name}", InDocument(), select, 0.15)
    for name, select in (("every layer", EVERY), ("upper half", HALF), ("upper quarter", UPPER), ("last layer", LAST))
)


COMPARED: dict[str, tuple[str | Method, ...]] = {
    "contexts": BY_CONTEXT,
    "layers": BY_LAYERS,
    "share": ("auto", "auto+title"),
}
CONTROLS = ("full", "naive", "random", "full+title", "naive+title")


def main(
    compare: Annotated[str, typer.Option(help="contexts; layers to read the question's attention in; or share.")],
    tasks: options.Tasks = None,
    data: options.Data = None,
    chunks: options.Passages = None,
    budgets: options.Budgets = "0.15",
    n: options.Count = 60,
    seed: options.Seed = 101,
    model: Annotated[str, typer.Option(help="Hub id or folder of the model.")] = "smollm2-tuned",
    workers: options.Workers = 1,
    out: Annotated[Path, typer.Option(help="JSON to write; table and picture go beside it.")] = Path("contexts.json"),
) -> None:
    """Ask every composition, and write the table."""
    setup = Setup(COMPARED[compare], numbers(budgets, float), (0,), n, model, "bfloat16", 24, 1, out, controls=CONTROLS)
    on_tasks(setup, chosen_tasks(tasks, data or [], chunks), seed, workers, together=True)


if __name__ == "__main__":
    typer.run(main)
