"""How the reader answers: full prefill, chunks computed alone, and the first tokens recomputed, by exact dense masks.

Reused KV is emulated to the letter: every chunk is read once more as a *ghost* at its own place (behind a ghost of the
prefix, where the encoding has one); rows which a method does not recompute see their ghost only.
"""

import argparse
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from ragcache.evaluate.tasks import TASKS, Example
from ragcache.train.prompts import OURS

MODES = {"full": None, "naive": (False, 0), "naive+prefix": (True, 0), "first4": (False, 4), "first4+prefix": (True, 4)}
"""Mode -> (chunks were computed behind the prefix, tokens per chunk recomputed); None is plain full prefill."""


@dataclass
class _Canvas:
    """Token ids and positions, and for every token the slots it may see."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sees: list[list[int]] = field(default_factory=list)

    def write(self, ids: list[int], position: int, context: list[int]) -> list[int]:
        """Append a causal run which also sees `context`; return its slots."""
        slots: list[int] = []
        for i, token in enumerate(ids):
            slots.append(len(self.ids))
            self.ids.append(token)
            self.positions.append(position + i)
            self.sees.append([*context, *slots])
        return slots


def lay_out(pieces: list[list[int]], tail: list[int], mode: tuple[bool, int] | None) -> tuple[_Canvas, list[int]]:
    """Return the canvas for [prefix, chunks…] + `tail` under `mode`, and the slots of the tail."""
    canvas = _Canvas()
    context = canvas.write(pieces[0], 0, [])
    for chunk in pieces[1:]:
        at = len(context)
        if mode is None:
            context += canvas.write(chunk, at, context)
            continue
        prefixed, again = mode
        before = canvas.write(pieces[0], at - len(pieces[0]), []) if prefixed else []
        ghost = canvas.write(chunk, at, before)
        context += [*canvas.write(chunk[:again], at, context), *ghost[again:]]
    return canvas, canvas.write(tail, len(context), context)


@torch.no_grad()
def right(model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, example: Example, mode: str) -> bool:
    """Whether greedy decoding would give the answer and stop: every answer token is the likeliest."""

    def ids(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False).input_ids)

    pieces = [ids(OURS.before), *(ids(c + "\n\n") for c in example.chunks)]
    answer = [*ids(" " + example.answers[-1]), tokenizer.eos_token_id]
    asked = ids(OURS.ask.format(q=example.question)) + ids(OURS.after)
    canvas, slots = lay_out(pieces, asked + answer[:-1], MODES[mode])
    logits = model(input_ids=torch.tensor([canvas.ids]), attention_mask=_mask(canvas),
                   position_ids=torch.tensor([canvas.positions]), use_cache=False).logits[0]  # fmt: skip
    return bool(logits[slots[len(asked) - 1 :]].argmax(-1).tolist() == answer)


def _mask(canvas: _Canvas) -> Tensor:
    n = len(canvas.ids)
    mask = torch.full((n, n), float("-inf"))
    for row, seen in enumerate(canvas.sees):
        mask[row, seen] = 0.0
    return mask[None, None]


def interval(hits: list[float], rng: random.Random) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    means = sorted(sum(rng.choices(hits, k=len(hits))) / len(hits) for _ in range(2000))
    return means[50], means[1949]


def measure(reader: Path, tasks: list[str], modes: list[str], n: int, seed: int) -> list[dict[str, object]]:
    """Return one row per task and mode: exact match in per cent with its interval, and the loss against full."""
    model = AutoModelForCausalLM.from_pretrained(reader, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(reader)
    rng, rows = random.Random(seed), []
    for task in tasks:
        examples = TASKS[task].examples(n, seed)
        hits = {m: [float(right(model, tokenizer, e, m)) for e in examples] for m in modes}
        for mode, own in hits.items():
            low, high = interval(own, rng)
            lost = [a - b for a, b in zip(hits[modes[0]], own, strict=True)]
            row = {"task": task, "mode": mode, "n": len(own), "score": sum(own) / len(own), "ci": (low, high),
                   "lost": sum(lost) / len(lost), "lost_ci": interval(lost, rng)}  # fmt: skip
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def main() -> None:
    """Parse the command line and print a JSON line per task and mode."""
    parser = argparse.ArgumentParser(prog="python -m ragcache.train.measure", description=__doc__)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--task", action="append", choices=list(TASKS))
    parser.add_argument("--mode", action="append", choices=list(MODES))
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    measure(given.reader, given.task or list(TASKS), given.mode or list(MODES), given.n, given.seed)


if __name__ == "__main__":
    main()
