"""What tuning for reading cost the model elsewhere: on ordinary prompts without passages, and on plain text.

    python bench/studies/tuning_cost.py --texts nq-open-examined.jsonl --out docs/benchmarks/tuning-cost.json

Ordinary prompts: the untuned model answers greedily; how likely does the tuned one find these replies, token by token,
and how many words does it say itself? Plain text: passages that it was not tuned on. Perplexities are means over texts,
each weighing the same.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import torch
import torch.nn.functional as F
import typer
from ragcache_bench import report
from ragcache_bench.commands.options import use_threads, write
from ragcache_bench.datasets.files import records
from ragcache_bench.metrics import bootstrap
from torch import Tensor

from ragcache import Reader
from ragcache.model.loading import load_reader

PROMPTS = """\
Write a short poem about autumn.
Explain what a black hole is to a child.
Give me three tips for sleeping better.
What is the capital of Australia?
Translate 'good morning' into French.
How do I boil an egg?
Write an e-mail to my landlord about a broken heater.
What is the difference between a crocodile and an alligator?
Name five fruits.
What is 17 plus 26?
Write a haiku about the sea.
Why is the sky blue?
Suggest a name for a bakery.
Summarise the plot of Romeo and Juliet in two sentences.
What should I pack for a hike?
Write a Python function that reverses a string.
What is photosynthesis?
Tell me a joke.
How many days are in a leap year?
Describe a sunset.
What are the benefits of exercise?
Write the first sentence of a detective story.
How does a bicycle stay upright?
Give me a synonym for 'happy'.
What is the boiling point of water?
Recommend a book for a ten-year-old.
How do I apologise to a friend?
What does 'democracy' mean?
List the planets of the solar system.
Write a slogan for a coffee shop.
How do vaccines work?
What is the past tense of 'go'?
Plan a day in Rome.
Why do leaves change colour?
Write a thank-you note to a teacher.
What is machine learning?
How can I save money?
Describe your ideal holiday.
What is an adjective?
How do I change a bicycle tyre?
""".splitlines()
REPLY, TEXT = 60, 200  # tokens, at most


def main(
    texts: Annotated[Path, typer.Option(help="JSONL with `ctxs`: passages that nothing was tuned on.")],
    models: Annotated[str, typer.Option(help="The untuned and the tuned one.")] = "smollm2,smollm2-tuned",
    n: Annotated[int, typer.Option(help="Passages.")] = 100,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    out: Annotated[Path, typer.Option(help="JSON to write.")] = Path("tuning-cost.json"),
) -> None:
    """Compare a model with itself before tuning."""
    use_threads(threads)
    before, after = (load_reader(name, dtype="bfloat16", device="cpu") for name in models.split(","))
    passages = list(dict.fromkeys(next(iter(row["ctxs"]))["text"].filled() for row in records(texts)))[:n]
    asked = [_prompt(before, text) for text in PROMPTS]
    replies = [_reply(before, ids) for ids in asked]
    losses = {
        name: {
            "replies": [_loss(reader, ids, said) for ids, said in zip(asked, replies, strict=True)],
            "text": [_loss(reader, ids[:1], ids[1:TEXT]) for ids in map(reader.tokenizer.encode, passages)],
        }
        for name, reader in (("before", before), ("after", after))
    }
    own = [_reply(after, ids) for ids in asked]
    rows = [_row(kind, losses["before"][kind], losses["after"][kind]) for kind in ("replies", "text")]
    lengths = {"before": _lengths(before, replies), "after": _lengths(after, own)}
    said = [
        {"prompt": text, "before": before.tokenizer.decode(one), "after": after.tokenizer.decode(two)}
        for text, one, two in zip(PROMPTS, replies, own, strict=True)
    ]
    about = report.meta(device=torch.device("cpu"), models=models, prompts=len(PROMPTS), passages=len(passages))
    write(out, {"meta": about, "rows": rows, "lengths": lengths, "said": said})
    for row in rows:
        typer.echo(row)
    typer.echo(lengths)


def _row(kind: str, before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    more = bootstrap([b - a for a, b in zip(before, after, strict=True)])
    return {
        "kind": kind,
        "n": len(before),
        "perplexity_before": math.exp(fmean(before)),
        "perplexity_after": math.exp(fmean(after)),
        "nats_more": asdict(more),
    }


def _prompt(reader: Reader, text: str) -> list[int]:
    rendered = reader.tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False
    )
    ids: list[int] = reader.tokenizer.encode(rendered, add_special_tokens=False)
    return ids


@torch.inference_mode()
def _reply(reader: Reader, ids: list[int]) -> list[int]:
    out = reader.model.generate(torch.tensor([ids]), max_new_tokens=REPLY, do_sample=False)
    said: list[int] = out[0, len(ids) :].tolist()
    return said


@torch.inference_mode()
def _loss(reader: Reader, ids: Sequence[int], said: Sequence[int]) -> float:
    """Nats a token of what follows `ids`."""
    whole = torch.tensor([[*ids, *said]])
    logits: Tensor = reader.model(whole).logits[0, len(ids) - 1 : -1].float()  # (said, vocabulary)
    return float(F.cross_entropy(logits, whole[0, len(ids) :]))


def _lengths(reader: Reader, replies: Sequence[Sequence[int]]) -> dict[str, float]:
    """Mean words of the replies, and the share that was cut at the most tokens."""
    texts = [reader.tokenizer.decode(list(said), skip_special_tokens=True) for said in replies]
    cut = [len(said) >= REPLY for said in replies]
    return {"words": fmean(len(text.split()) for text in texts), "cut": fmean(cut)}


if __name__ == "__main__":
    typer.run(main)
