"""The tuning run: steps over drawn contexts, checkpoints, a JSON line every few steps; an interrupted run resumes."""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from ragcache_bench.agreement import best
from ragcache_bench.questions.worlds import Context
from reader_tuning import checkpoint
from reader_tuning.adapter import Adapter
from torch import Tensor
from transformers import PreTrainedModel

from auxiliary_tuning.contexts import draw
from auxiliary_tuning.importance import (
    SHARES,
    Asked,
    importance_loss,
    lay_out,
    question_attention,
    recompute_labels,
)
from ragcache.prompt import Template


@dataclass(frozen=True)
class Settings:
    """What a run may vary.

    Attributes
    ----------
    steps : int
        Updates; the learning rate rises over `warm_up` of them, and falls to 0 as a cosine.
    contexts : int
        Contexts a step.
    rate : float
        Learning rate of AdamW.
    rank : int
        Of the adapter; its scale is 2.
    seed : int
        Of the draw.
    every : int
        Steps between two checkpoints, each with a look at the validation contexts.
    validation : int
        Contexts of the same families that are not trained on.
    """

    steps: int = 320
    contexts: int = 2
    rate: float = 2e-3
    warm_up: int = 10
    rank: int = 16
    seed: int = 0
    every: int = 40
    validation: int = 12


class Tuner:
    """Tunes an auxiliary by an adapter, going on from the folder's last checkpoint.

    Parameters
    ----------
    folder : Path
        Receives `state.safetensors`, `log.jsonl`, and the `adapter/` at every checkpoint.
    auxiliary, primary : PreTrainedModel
        With eager attention, and the same tokens.
    tokenizer : PreTrainedTokenizerBase
        Of both.
    settings : Settings
        How.
    base : str
        What is tuned, for the adapter's files.
    drawn : callable
        Draws a context.

    Raises
    ------
    InvalidArgument
        If the folder holds a run with other settings, or of something else.
    """

    def __init__(
        self,
        folder: Path,
        auxiliary: PreTrainedModel,
        primary: PreTrainedModel,
        tokenizer: Any,
        settings: Settings = Settings(),
        base: str = "",
        drawn: Callable[[random.Random], Context] = draw,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.settings, self.base = folder, settings, base
        self._auxiliary, self._primary, self._template, self._drawn = auxiliary, primary, Template(tokenizer), drawn
        self._frozen = {name: weight.detach() for name, weight in auxiliary.named_parameters()}
        self.adapter = Adapter.new(self._frozen, settings.rank, 2.0 * settings.rank, settings.seed)
        self._trained = list(self.adapter.parameters())
        self._adam = torch.optim.AdamW(self._trained, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0)
        self._ours = {"base": base, "settings": asdict(settings)}
        about = checkpoint.load(folder, self._trained, self._adam, self._ours) or {"step": 0, "seconds": 0.0}
        self._step, self._seconds = about["step"], about["seconds"]
        self._losses: list[float] = []

    def run(self, until: int | None = None) -> None:
        """Tune until all steps are done, or so many of them."""
        s = self.settings
        if self._step == 0:
            (self.folder / checkpoint.LOG).unlink(missing_ok=True)  # of a run that never came to a checkpoint
            self._log({"validation": self.validate()})
        while self._step < min(s.steps, until or s.steps):
            begun = time.monotonic()
            self._update(random.Random(f"auxiliary {s.seed} {self._step}"))
            self._seconds += time.monotonic() - begun
            self._step += 1
            if self._step % s.every == 0 or self._step == s.steps:
                self._save()
                self._log({"loss": _mean(self._losses), "validation": self.validate()})
                self._losses.clear()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The loss on contexts that are not trained on, and the overlap with the primary's choice at each budget."""
        found: dict[str, list[float]] = {"loss": []}
        for asked, mass in self._validation:
            own = self.importance(asked)
            found["loss"].append(float(importance_loss(own, recompute_labels(mass))))
            for share in SHARES:
                shared = [_overlap(*pair, share) for pair in zip(own, mass, strict=True)]
                found.setdefault(f"overlap at {share:.0%}", []).append(_mean(shared))
        return {name: round(_mean(values), 4) for name, values in found.items()}

    def importance(self, asked: Asked) -> Tensor:
        """What the auxiliary, as it is tuned now, gives to each selectable token, (questions, selectable)."""
        weights = {name: self._frozen[name] + self.adapter.added(name) for name in self.adapter.pairs}
        return question_attention(self._auxiliary, asked, last=True, weights=weights)

    @cached_property
    def _validation(self) -> list[tuple[Asked, Tensor]]:
        return [self._read(random.Random(f"validation {i}")) for i in range(self.settings.validation)]

    @torch.no_grad()
    def _read(self, rng: random.Random) -> tuple[Asked, Tensor]:
        """A context, and what the primary attends to in it."""
        asked = lay_out(self._template, self._drawn(rng))
        return asked, question_attention(self._primary, asked, last=False)

    def _update(self, rng: random.Random) -> None:
        """One step; each context weighs the same."""
        s, total = self.settings, 0.0
        for _ in range(s.contexts):
            asked, mass = self._read(rng)
            loss = importance_loss(self.importance(asked), recompute_labels(mass)) / s.contexts
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        pace = min(1.0, (self._step + 1) / s.warm_up) * 0.5 * (1 + math.cos(math.pi * self._step / s.steps))
        self._adam.param_groups[0]["lr"] = s.rate * pace
        torch.nn.utils.clip_grad_norm_(self._trained, 1.0)
        self._adam.step()
        self._adam.zero_grad()
        self._losses.append(total)

    def _log(self, more: dict[str, Any]) -> None:
        about = {"step": self._step, "minutes": round(self._seconds / 60, 1)}
        checkpoint.add_line(self.folder, about | more)

    def _save(self) -> None:
        checkpoint.save(
            self.folder, self._trained, self._adam, {**self._ours, "step": self._step, "seconds": self._seconds}
        )
        self.adapter.save(self.folder / "adapter", self.base)


def _overlap(ours: Tensor, theirs: Tensor, share: float) -> float:
    wanted = best(theirs, share)
    return float(torch.isin(wanted, best(ours, share)).float().mean())


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / max(1, len(values)), 4)
