"""The tuning run: steps over drawn contexts, checkpoints, a JSON line every few steps; an interrupted run resumes."""

import json
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from reader_training.batches import BRANCH, Batch, Row, collate
from reader_training.forward import hidden_states
from torch import Tensor
from transformers import PreTrainedModel

from reader_tuning import checkpoint
from reader_tuning.adapter import Adapter, Factors
from reader_tuning.contexts import Context
from reader_tuning.examine import examine, shares
from reader_tuning.rows import Layout

_TOGETHER = 4
"""Rows of a forward on a GPU: some 13 GB of activations of a model of 135 million parameters."""


class Source(Protocol):
    """What is read."""

    def draw(self, rng: random.Random) -> Context:
        """Return a context to train on; it may be without questions."""

    def validation(self) -> Mapping[str, Iterable[Context]]:
        """Contexts that the curve is drawn from, by name."""


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
    seed : int
        Of the draw.
    every : int
        Steps between two checkpoints, each with a look at the validation questions.
    """

    steps: int = 800
    contexts: int = 4
    rate: float = 7e-4
    warm_up: int = 30
    seed: int = 0
    every: int = 75


class Tuner:
    """Tunes a model, going on from the folder's last checkpoint.

    Parameters
    ----------
    folder : Path
        Receives `state.safetensors` and `answers.json` at every checkpoint, and `log.jsonl`.
    model : PreTrainedModel
        A Llama or Qwen3; its dtype is that of the arithmetic.
    tokenizer : PreTrainedTokenizerBase
        Its tokenizer, with a chat template.
    source : Source
        What is read.
    adapter : Adapter
        What is trained; it begins as nothing.
    settings : Settings
        How.
    base : str
        What is tuned, and on what: another run's folder is refused by it.
    workers : int
        Threads that read a step's contexts side by side, each on one core.

    Raises
    ------
    InvalidArgument
        If the folder holds a run with other settings, or of something else.
    """

    def __init__(
        self,
        folder: Path,
        model: PreTrainedModel,
        tokenizer: Any,
        source: Source,
        adapter: Adapter,
        settings: Settings = Settings(),
        base: str = "",
        workers: int = 1,
    ) -> None:
        self.folder, self.model, self.settings, self.base = folder, model, settings, base
        self._source, self.adapter, self._workers = source, adapter, workers
        folder.mkdir(parents=True, exist_ok=True)
        self.layout = Layout(tokenizer)
        self._frozen = {name: weight.detach() for name, weight in model.named_parameters()}
        self._adam = torch.optim.AdamW(self.adapter.parameters(), lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0)
        self._step, self._seconds, self._tokens = 0, 0.0, 0
        self._losses: list[float] = []
        self._load()

    def run(self, until: int | None = None) -> None:
        """Tune until all steps are done, or so many of them."""
        if self._step == 0:
            (self.folder / checkpoint.LOG).unlink(missing_ok=True)  # of a run that never came to a checkpoint
            self._log({"validation": self.validate()})
        while self._step < min(self.settings.steps, until or self.settings.steps):
            begun = time.monotonic()
            self._update(random.Random(f"{self.settings.seed} {self._step}"))
            self._seconds += time.monotonic() - begun
            self._step += 1
            if self._step % 10 == 0:
                self._log({})
            if self._step % self.settings.every == 0 or self._step == self.settings.steps:
                self._save()
                self._log({"validation": self.validate()})

    def validate(self) -> dict[str, dict[str, float]]:
        """Shares of the validation questions that are answered, by source; `answers.json` keeps the answers."""
        with self._merged():
            replies = {name: examine(self.model, self.layout, of) for name, of in self._source.validation().items()}
        text = json.dumps({name: [asdict(one) for one in of] for name, of in replies.items()}, indent=1)
        (self.folder / "answers.json").write_text(text, encoding="utf-8")
        return {name: shares(of) for name, of in replies.items()}

    def export(self, folder: Path) -> None:
        """Write the tuned model as a stock Hugging Face folder, in its dtype."""
        with self._merged():
            self.model.save_pretrained(folder)
        self.layout.tokenizer.save_pretrained(folder)

    # -- one step -----------------------------------------------------------------------------------------------
    def _update(self, rng: random.Random) -> None:
        """One step; the gradients of the contexts' answers add up, each answer weighing the same."""
        rows: list[Row] = []
        while len(rows) < self.settings.contexts:
            context = self._source.draw(rng)
            if context.asked:
                rows.append(self.layout.row(rng, context))
        answers = sum(map(_count, rows))
        merged = self._frozen | {name: self._sum(name) for name in self.adapter.pairs}
        with ThreadPoolExecutor(self._workers) as pool:
            found = list(pool.map(lambda part: self._gradients(merged, part, answers), self._parts(rows)))
        for place, matrix in enumerate(self.adapter.parameters()):
            matrix.grad = torch.stack([gradients[place] for _, gradients in found]).sum(0)
        self._tokens += sum(len(row.ids) for row in rows)
        self._step_adam()
        self._losses.append(sum(loss for loss, _ in found))

    def _gradients(self, weights: dict[str, Tensor], rows: list[Row], answers: int) -> tuple[float, list[Tensor]]:
        """The loss of some of a step's rows, and its gradients."""
        factors = self.adapter.factors()
        total = 0.0
        for some in self._forwards(rows):
            loss = self._loss(weights, factors, collate(some).to(self.model.device)) / answers
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total, self.adapter.gradients(factors)

    @torch.no_grad()
    def _sum(self, name: str) -> Tensor:
        found: Tensor = self._frozen[name] + self.adapter.added(name).to(self.model.dtype)
        return found

    def _parts(self, rows: list[Row]) -> list[list[Row]]:
        """The rows that each worker reads: the longest first, each to whoever has least to read."""
        parts: list[list[Row]] = [[] for _ in range(min(self._workers, len(rows)))]
        for row in sorted(rows, key=lambda row: -len(row.ids)):
            min(parts, key=lambda part: sum(len(one.ids) for one in part)).append(row)
        return parts

    def _forwards(self, rows: list[Row]) -> list[list[Row]]:
        """The rows of each forward, alike in length, since padding is computed too; a single one on a CPU."""
        size = 1 if self.model.device.type == "cpu" else _TOGETHER
        ordered = sorted(rows, key=lambda row: len(row.ids))
        return [ordered[i : i + size] for i in range(0, len(ordered), size)]

    def _loss(self, weights: dict[str, Tensor], factors: dict[str, Factors], batch: Batch) -> Tensor:
        """Cross-entropy of the answers' tokens: a mean over each answer, summed over the answers."""
        (hidden,) = hidden_states(
            weights, self.model.config, batch.ids, batch.bias(), batch.position, self.model.dtype, pairs=factors
        )
        of = torch.arange(len(batch.ids), device=batch.ids.device)[:, None] * 2 * BRANCH  # a row's answers are its own
        ids, segment = batch.ids.flatten(), (batch.segment + of).flatten()
        at = batch.label.flatten().nonzero()[:, 0]
        logits = F.linear(hidden.flatten(0, 1)[at - 1], weights["model.embed_tokens.weight"]).float()
        losses = F.cross_entropy(logits, ids[at], reduction="none")
        _, place, lengths = torch.unique(segment[at], return_inverse=True, return_counts=True)
        total: Tensor = (losses / lengths[place]).sum()
        return total

    def _step_adam(self) -> None:
        s = self.settings
        done = self._step / s.steps
        pace = min(1.0, (self._step + 1) / s.warm_up) * 0.5 * (1 + math.cos(math.pi * done))
        self._adam.param_groups[0]["lr"] = s.rate * pace
        torch.nn.utils.clip_grad_norm_(self.adapter.parameters(), 1.0)
        self._adam.step()
        self._adam.zero_grad()

    @contextmanager
    def _merged(self) -> Iterator[None]:
        """The model with what was trained, as long as this lasts."""
        weights = dict(self.model.named_parameters())
        kept = {name: weights[name].detach().clone() for name in self.adapter.pairs}
        with torch.no_grad():
            for name in kept:
                weights[name].copy_(self._sum(name))
        try:
            yield
        finally:
            with torch.no_grad():
                for name, weight in kept.items():
                    weights[name].copy_(weight)

    # -- files --------------------------------------------------------------------------------------------------
    def _log(self, more: dict[str, object]) -> None:
        loss = sum(self._losses) / max(1, len(self._losses))
        self._losses.clear()
        line = {
            "step": self._step, "minutes": round(self._seconds / 60, 1), "tokens": self._tokens,
            **({} if more else {"loss": round(loss, 4)}), **more,
        }  # fmt: skip
        checkpoint.add_line(self.folder, line)

    @property
    def _ours(self) -> dict[str, Any]:
        return {"base": self.base, "settings": asdict(self.settings)}

    def _save(self) -> None:
        about = {**self._ours, "step": self._step, "seconds": self._seconds, "tokens": self._tokens}
        checkpoint.save(self.folder, list(self.adapter.parameters()), self._adam, about)

    def _load(self) -> None:
        about = checkpoint.load(self.folder, list(self.adapter.parameters()), self._adam, self._ours)
        if about is not None:
            self._step, self._seconds, self._tokens = about["step"], about["seconds"], about["tokens"]


def _count(row: Row) -> int:
    """Answers in a row."""
    return len({segment for segment, label in zip(row.segment, row.label, strict=True) if label})
