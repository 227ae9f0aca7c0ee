"""The learning curve: a JSON line every few steps, with the loss, and with what is answered at each checkpoint."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ragcache.report import Progress
from ragcache_finetune.files import write_whole
from ragcache_finetune.settings import Settings

STAGE = "training"


class Curve(TrainerCallback):
    """Writes the curve, and shows progress.

    Parameters
    ----------
    file : Path
        JSONL; a run that goes on keeps the lines up to its checkpoint.
    settings : Settings
        Steps, and how many lie between two looks at what is held out.
    progress : callable
        Called after each step.
    examine : callable
        The shares of held-out questions that are answered.
    """

    def __init__(
        self, file: Path, settings: Settings, progress: Progress, examine: Callable[[], dict[str, float]]
    ) -> None:
        self._file, self._settings, self._progress, self._examine = file, settings, progress, examine
        self._seconds, self._begun = 0.0, 0.0

    def totals(self) -> dict[str, Any]:
        """Seconds of training, and the last answers, for the card."""
        examined = [line for line in self._lines() if "answered" in line]
        return {
            "seconds": round(self._seconds, 1),
            "answered_before": examined[0]["answered"] if examined else {},
            "answered_after": examined[-1]["answered"] if examined else {},
            "loss": next((line["loss"] for line in reversed(self._lines()) if "loss" in line), None),
        }

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Keep what belongs to the steps that are done; look once before the first."""
        kept = [line for line in self._lines() if line["step"] <= state.global_step]
        write_whole(self._file, "".join(json.dumps(line) + "\n" for line in kept))
        self._seconds = max((line["seconds"] for line in kept), default=0.0)
        if state.global_step == 0:
            self._look(0, model)
        self._begun = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Write the loss."""
        if logs and "loss" in logs:
            self._write({"step": state.global_step, "loss": round(logs["loss"], 4), "rate": logs["learning_rate"]})

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Show progress; look where a checkpoint follows."""
        self._progress(STAGE, state.global_step, self._settings.steps)
        if state.global_step % self._settings.every == 0 or state.global_step == self._settings.steps:
            self._pause()
            self._look(state.global_step, model)
            self._begun = time.monotonic()

    def _look(self, step: int, model: Any) -> None:
        model.eval()
        self._write({"step": step, "answered": self._examine()})
        model.train()

    def _pause(self) -> None:
        self._seconds += time.monotonic() - self._begun
        self._begun = time.monotonic()

    def _write(self, line: dict[str, Any]) -> None:
        if self._begun:
            self._pause()
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "seconds": round(self._seconds, 1)}) + "\n")

    def _lines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else ():
            with suppress(ValueError):  # the half of one that a kill, or a full disk, has left
                found.append(json.loads(line))
        return found
