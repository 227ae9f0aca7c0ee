"""The training run: repeat phase, curriculum, checkpoints, a JSON line every few steps."""

import copy
import json
import random
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from ragcache_bench.questions.families import draw
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedTokenizerFast

from reader_training.batches import BRANCH, Batch, Encoder, Questions, collate, make_row, repeat_batch
from reader_training.curriculum import (
    ADVANCE_AFTER,
    ADVANCE_AT,
    FIRST_MIXED,
    LEVELS,
    REPEAT_SHARE,
    REPEAT_STEPS,
    REPEAT_UNTIL,
    WEAKEST_AT,
)
from reader_training.forward import hidden_states
from reader_training.model import new_reader, shallower
from reader_training.muon import Muon
from reader_training.tokens import build_tokenizer, save_tokenizer

EARLY = 3
"""Layers, at most half of all, after which a word that stands for a name has to be understood: the others look up."""


@dataclass
class Settings:
    """What a run may vary; `start` is a reader to go on from, at `level`; `blocked` see `Questions`.

    `language` and `meant` weigh two losses beside the answers': of the next token on a quarter of the others, and
    of the name that a word stands for, read off after `EARLY` layers. `dtype` is that of activations and of Muon's
    steps: on a processor without units for bfloat16, float32 is many times faster.
    """

    minutes: float = 95.0
    tokens: int = 4096
    rate: float = 2e-3
    decay: float = 0.55
    language: float = 0.05
    meant: float = 0.3
    seed: int = 0
    vocabulary: int = 2048
    layers: int = 8
    blocked: float = 0.0
    start: Path | None = None
    level: int = FIRST_MIXED
    checkpoint_every: float = 4.0
    dtype: str = "bfloat16"


@dataclass
class Progress:
    """Where a run stands; saved beside the weights."""

    minutes: float = 0.0
    step: int = 0
    seen: int = 0
    level: int = -1  # -1: the repeat phase
    since: int = 0
    repeat_loss: float = 8.0
    loss: float = 8.0
    match: dict[str, float] = field(default_factory=dict)


class Trainer:
    """Trains the bundled reader in `folder`, going on from its last checkpoint.

    Parameters
    ----------
    folder : Path
        Receives `state.safetensors`, `state.json`, `log.jsonl`, the tokenizer, and at the end `reader/`.
    settings : Settings
        Length, batch size, learning rate.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer = self._own_tokenizer()
        self.model = self._new()
        if settings.start:
            other = AutoModelForCausalLM.from_pretrained(settings.start, dtype=torch.float32)
            layers = other.config.num_hidden_layers
            self.model.load_state_dict(shallower(other.state_dict(), layers, settings.layers))
        self.weights: dict[str, Tensor] = dict(self.model.named_parameters())
        matrices = {n: p for n, p in self.weights.items() if p.ndim == 2 and "embed" not in n}
        self.rest = [p for n, p in self.weights.items() if n not in matrices]
        self._dtype: torch.dtype = getattr(torch, settings.dtype)
        self.muon = Muon(matrices.values(), dtype=self._dtype)
        self.adam = torch.optim.AdamW(self.rest, lr=settings.rate, betas=(0.9, 0.98), weight_decay=0.0)
        self.progress = Progress(level=settings.level if settings.start else -1)
        if (folder / "state.json").exists():
            self._load()
        self._rng = random.Random(settings.seed + self.progress.step)
        self._encode = Encoder(self.tokenizer)
        self._questions = Questions(self._encode, self._rng, settings.tokens, settings.blocked)

    def run(self) -> None:
        """Train until the minutes are used up, then export."""
        p, begun = self.progress, time.monotonic() - self.progress.minutes * 60
        saved = p.minutes
        while p.minutes < self.settings.minutes:
            self._step()
            p.minutes = (time.monotonic() - begun) / 60
            if p.step % 25 == 0:
                self._log({})
            if p.minutes - saved > self.settings.checkpoint_every:
                saved = p.minutes
                self._save()
                self._log({"held_out": self.evaluate()})
        self._save()
        self._log({"held_out": self.evaluate(256)})
        self.export(self.folder / "reader")

    def export(self, folder: Path) -> None:
        """Write a stock Hugging Face folder: bf16 weights, config, tokenizer; and the learning curve."""
        copy.deepcopy(self.model).bfloat16().save_pretrained(folder)
        (folder / "model.safetensors").chmod(0o644)
        save_tokenizer(self.tokenizer, folder)
        log = self.folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        kept = [line for i, line in enumerate(lines) if i % 8 == 0 or "held_out" in line]
        (folder / "curve.json").write_text("[\n" + ",\n".join(kept) + "\n]\n")

    def _new(self) -> LlamaForCausalLM:
        s = self.settings
        return new_reader(s.vocabulary, s.seed, layers=s.layers)

    def _own_tokenizer(self) -> PreTrainedTokenizerFast:
        if self.settings.start:
            return PreTrainedTokenizerFast.from_pretrained(self.settings.start)
        folder = self.folder / "tokenizer"
        if not folder.exists():
            save_tokenizer(build_tokenizer(self.settings.vocabulary), folder)
        return PreTrainedTokenizerFast.from_pretrained(folder)

    # -- one step -----------------------------------------------------------------------------------------------
    def _step(self) -> None:
        p = self.progress
        repeat = p.level < 0 or self._rng.random() < REPEAT_SHARE
        if repeat:
            batch = repeat_batch(self._rng, self._encode.size, self.settings.tokens)
        else:
            batch = self._questions.next(LEVELS, p.level)
        answer, right = self._backward(batch, language=0.0 if repeat else self.settings.language)
        self._update()
        p.step += 1
        p.seen += batch.ids.numel()
        if repeat:
            p.repeat_loss += 0.1 * (answer - p.repeat_loss)
        else:
            p.loss += 0.03 * (answer - p.loss)
            self._remember(right)
        self._advance()

    def _backward(self, batch: Batch, language: float) -> tuple[float, dict[str, float]]:
        early, hidden = self._hidden(batch)
        ids, label = batch.ids.flatten(), batch.label.flatten()
        at = label.nonzero()[:, 0]
        logits = self._logits(hidden[at - 1])
        loss = F.cross_entropy(logits, ids[at])
        total = loss
        if language:
            segment = batch.segment.flatten()
            other = ((segment[1:] == segment[:-1]) & (segment[1:] >= 0) & ~label[1:]).nonzero()[:, 0] + 1
            other = other[torch.rand(len(other)) < 0.25]
            total = loss + language * F.cross_entropy(self._logits(hidden[other - 1]), ids[other])
        right = exact_match(batch, logits.detach(), at)
        if len(batch.meant):
            at_name, name = batch.meant.unbind(1)
            named = self._logits(early[at_name])
            total = total + self.settings.meant * F.cross_entropy(named, name)
            right["meant"] = (named.topk(3).indices == name[:, None]).any(-1).float().mean().item()
        total.backward()  # type: ignore[no-untyped-call]
        return loss.item(), right

    def _hidden(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """States after the first layers and at the end, (B T, d) each."""
        config = self.model.config
        depth = min(EARLY, config.num_hidden_layers // 2)
        early, last = hidden_states(
            self.weights, config, batch.ids, batch.bias(), batch.position, depths=(depth,), dtype=self._dtype
        )
        return early.flatten(0, 1), last.flatten(0, 1)

    def _logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weights["model.embed_tokens.weight"].to(hidden.dtype)).float()

    def _update(self) -> None:
        rate = self.settings.rate * self._pace()
        torch.nn.utils.clip_grad_norm_(self.rest, 1.0)
        self.muon.step(rate)
        self.adam.param_groups[0]["lr"] = rate
        self.adam.step()
        for w in self.weights.values():
            w.grad = None

    def _pace(self) -> float:
        s, p = self.settings, self.progress
        left = (1 - p.minutes / s.minutes) / s.decay
        return min(1.0, (p.step + 1) / 60) * min(1.0, max(0.03, left))

    def _remember(self, right: dict[str, float]) -> None:
        for family, share in right.items():
            old = self.progress.match.get(family, 0.0)
            self.progress.match[family] = old + 0.04 * (share - old)

    def _advance(self) -> None:
        p = self.progress
        if p.level < 0:
            ready = p.repeat_loss < REPEAT_UNTIL or p.step > REPEAT_STEPS
        else:
            told = [v for k, v in p.match.items() if k not in ("unknown", "meant")]
            steps = p.step - p.since
            ready = steps > ADVANCE_AFTER and sum(told) / max(1, len(told)) > ADVANCE_AT
            most = LEVELS[p.level].steps
            ready = steps > most if most else ready and min(told) > WEAKEST_AT
        if ready and p.level + 1 < len(LEVELS):
            p.level, p.since = p.level + 1, p.step

    # -- how well ------------------------------------------------------------------------------------------------
    @torch.no_grad()
    def evaluate(self, contexts: int = 64) -> dict[str, float]:
        """Teacher-forced exact match per family on held-out names; `…/chunkwise` where no chunk sees another."""
        sums: dict[str, list[float]] = {}
        level = LEVELS[max(0, self.progress.level)]
        for reach in ("full", "prefixed"):
            rng = random.Random(77)
            for _ in range(contexts // 4):
                rows = [make_row(rng, self._encode, draw(rng, level, True), 0.0, reach, 8) for _ in range(4)]
                batch = collate(rows)
                at = batch.label.flatten().nonzero()[:, 0]
                for family, share in exact_match(batch, self._logits(self._hidden(batch)[1][at - 1]), at).items():
                    sums.setdefault(family + "/chunkwise" * (reach != "full"), []).append(share)
        return {k: round(sum(v) / len(v), 3) for k, v in sorted(sums.items())}

    # -- files ---------------------------------------------------------------------------------------------------
    def _log(self, more: dict[str, object]) -> None:
        p = self.progress
        line = {"minutes": round(p.minutes, 2), "step": p.step, "tokens": p.seen, "level": p.level,
                "repeat_loss": round(p.repeat_loss, 3), "loss": round(p.loss, 3),
                "match": {k: round(v, 3) for k, v in sorted(p.match.items())}, **more}  # fmt: skip
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _save(self) -> None:
        state = {f"w.{n}": p.detach() for n, p in self.weights.items()}
        state |= {f"m.{i}": b for i, b in enumerate(self.muon.buffers)}
        for i, p in enumerate(self.rest):
            state |= {f"a.{i}.{k}": v for k, v in self.adam.state[p].items()}
        save_file(state, self.folder / "new.safetensors")
        (self.folder / "new.safetensors").replace(self.folder / "state.safetensors")
        (self.folder / "state.json").write_text(json.dumps(asdict(self.progress)))

    @torch.no_grad()
    def _load(self) -> None:
        self.progress = Progress(**json.loads((self.folder / "state.json").read_text()))
        state = load_file(self.folder / "state.safetensors")
        for name, p in self.weights.items():
            p.copy_(state[f"w.{name}"])
        for i, buffer in enumerate(self.muon.buffers):
            buffer.copy_(state[f"m.{i}"])
        for i, p in enumerate(self.rest):
            self.adam.state[p] = {k: state[f"a.{i}.{k}"] for k in ("step", "exp_avg", "exp_avg_sq")}


def exact_match(batch: Batch, logits: Tensor, at: Tensor) -> dict[str, float]:
    """Share of answers per family of which every token is the likeliest; `at` are the answers' flat places."""
    ids, segment = batch.ids.flatten(), batch.segment.flatten()
    wrong = logits.argmax(-1) != ids[at]
    width = batch.ids.shape[1]
    sums: dict[str, list[bool]] = {}
    key = (at // width) * 100_000 + segment[at]
    answers, place = torch.unique(key, return_inverse=True)
    missed = torch.zeros(len(answers)).index_add_(0, place, wrong.float())
    for code, bad in zip(answers.tolist(), missed.tolist(), strict=True):
        row, branch = divmod(code, 100_000)
        families = batch.families[row]
        if families:
            sums.setdefault(families[branch - BRANCH], []).append(bad == 0)
    return {k: sum(v) / len(v) for k, v in sums.items()}
