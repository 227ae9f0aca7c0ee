"""One run of training, from settings to an adapter's folder; what was stopped goes on from its last checkpoint."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from errno import EDQUOT, ENOSPC
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from ragcache.errors import InvalidArgument, RagCacheError, StorageFull
from ragcache.model.reader import Reader
from ragcache.model.tuning import Tuning, read_tuning, write_tuning
from ragcache.report import Progress, ignore_progress
from ragcache_finetune import ordinary
from ragcache_finetune.card import write_card
from ragcache_finetune.contexts import Context, digest
from ragcache_finetune.curve import Curve
from ragcache_finetune.examine import share_answered
from ragcache_finetune.files import read_json, write_json
from ragcache_finetune.layout import SampleLayout
from ragcache_finetune.links import activation_dtype, save_links
from ragcache_finetune.masks import collate
from ragcache_finetune.material import Material, count, gather_material
from ragcache_finetune.models import computing_dtype, load_base, make_trainable
from ragcache_finetune.recipes import Recipe, find_recipe
from ragcache_finetune.settings import Settings
from ragcache_finetune.trainer import Course, LinkTrainer, answer_loss

CHECKPOINTS, RUN, REPORT, ORDINARY, CURVE = "checkpoints", "run.json", "report.json", "ordinary.json", "curve.jsonl"
_KEPT = 2  # checkpoints; the last may be half written when a process is killed


def finetune(
    settings: Settings, *, note: Callable[[str], None] = print, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """Train, and write the adapter with its record, its curve and its card.

    Parameters
    ----------
    settings : Settings
        What to do.
    note : callable
        Told what is no part of the result.
    progress : callable
        Called after each step.

    Returns
    -------
    dict
        What the card says, for machines.

    Raises
    ------
    InvalidArgument
        If something that is asked for cannot be, or the folder holds another run.
    StorageFull
        If the disk is full; the last checkpoint is as it was.
    """
    try:
        return _finetune(settings, note, progress)
    except OSError as error:
        if isinstance(error, RagCacheError) or error.errno not in (ENOSPC, EDQUOT):
            raise
        raise StorageFull(
            f"the disk refused a write to {settings.out} ({error.strerror}); free some space and run the same command "
            "again, which goes on from the last checkpoint"
        ) from error


def _finetune(settings: Settings, note: Callable[[str], None], progress: Progress) -> dict[str, Any]:
    recipe = find_recipe(settings.recipe, settings.links)
    check_folder(settings.out, recipe)
    material = gather_material(settings, note)
    reader = load_base(settings)
    about = settings.as_dict() | {
        "links": recipe.links, "contexts": digest(material.training + material.held),
        "dtype": str(computing_dtype(settings)).removeprefix("torch."), "fingerprint": reader.fingerprint,
    }  # fmt: skip
    _claim(settings.out, about)
    if (done := read_json(settings.out / REPORT)) is not None:
        note(f"{settings.out} is trained already; name another folder with --out to train again")
        return dict(done)
    former = _former_replies(settings.out, reader)
    layout = SampleLayout(reader.tokenizer, recipe, ordinary.leading_space(reader.tokenizer, former))
    _check_lengths(material, layout, reader)
    course = Course(material.training, layout, settings.steps * settings.batch, settings.seed)
    documents = course.most_chunks if recipe.links else 0
    if recipe.links:
        material = material.examine_up_to(documents, note)
    before = ordinary.nats(reader.model, former)
    model = make_trainable(reader.model, settings, recipe, documents)
    _say_passes(settings, recipe, material, note)
    curve = Curve(settings.out / CURVE, settings, progress, partial(_examine, reader, layout, material.held))
    trainer = _trainer(model, settings, course, curve)
    trainer.train(resume_from_checkpoint=_last_whole(settings.out / CHECKPOINTS))
    tuning = Tuning(
        recipe.name, recipe.attention, recipe.positions, recipe.links, documents, settings.base, settings.steps
    )
    model.eval()
    cost = {"nats_before": before, "nats_after": ordinary.nats(reader.model, former), "prompts": len(former)}
    return _finish(settings, reader, model, tuning, about, cost, curve, material)


def check_folder(out: Path, recipe: Recipe) -> None:
    """Refuse a folder that holds something else.

    Raises
    ------
    InvalidArgument
        If it holds an adapter of another recipe, or files that are no run of ours.
    """
    tuning = read_tuning(out)
    if tuning and (tuning.recipe, tuning.links) != (recipe.name, recipe.links):
        theirs, ours = (
            f"{one}, {links} link tokens" for one, links in ((tuning.recipe, tuning.links), (recipe.name, recipe.links))
        )
        raise InvalidArgument(
            f"{out} holds an adapter of the recipe {theirs}, not {ours}; name another folder with --out"
        )
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / RUN).exists()):
        raise InvalidArgument(f"{out} exists and holds no run of `ragcache finetune`; name a new folder with --out")


def _claim(out: Path, about: dict[str, Any]) -> None:
    """Begin a run in a folder, or go on with the same one; of one that came to no checkpoint nothing is kept."""
    theirs = read_json(out / RUN) or {}
    other = {name: (theirs.get(name), value) for name, value in about.items() if theirs.get(name) != value}
    if not other:
        return
    if (out / REPORT).exists() or _last_whole(out / CHECKPOINTS):
        said = ", ".join(f"{name} {was!r}, not {now!r}" for name, (was, now) in other.items())
        raise InvalidArgument(f"{out} holds a run with {said}; go on with the same, or name another folder with --out")
    for name in (ORDINARY, CURVE):
        (out / name).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / RUN, about)


def _former_replies(out: Path, reader: Reader) -> list[ordinary.Reply]:
    """What the untrained model says to ordinary prompts; said once, for a run that goes on too."""
    file = out / ORDINARY
    if not file.exists():
        write_json(file, [asdict(one) for one in ordinary.replies(reader.model, reader.tokenizer)])
    return [ordinary.Reply(**one) for one in read_json(file)]


def _check_lengths(material: Material, layout: SampleLayout, reader: Reader) -> None:
    """Refuse a context that no prompt could be."""
    for number, context in enumerate(material.training + material.held, 1):
        last = max(layout.sample(context, independent=False).positions)
        if last >= reader.limit:
            raise InvalidArgument(
                f"context {number} takes {last + 1:,} tokens, and {reader.label} reads {reader.limit:,}; give it fewer "
                "chunks, or shorter ones"
            )


def _say_passes(settings: Settings, recipe: Recipe, material: Material, note: Callable[[str], None]) -> None:
    passes = settings.steps * settings.batch / len(material.training)
    if recipe.attention == "alternating" and passes < 2:
        note(
            f"{len(material.training)} contexts are read {passes:.1f} times; under both masks each only with "
            f"--steps {-(-2 * len(material.training) // settings.batch)}"
        )


def _examine(reader: Reader, layout: SampleLayout, held: list[Context]) -> dict[str, float]:
    """The share of held-out questions that are answered, under the masks that are trained; nothing if none are held."""
    if not held:
        return {}
    wanted = {"full": (False,), "independent": (True,), "alternating": (False, True)}[layout.recipe.attention]
    names = {False: "full", True: "independent"}
    return {
        names[one]: round(share_answered(reader.model, reader.tokenizer, layout, held, independent=one), 4)
        for one in wanted
    }


def _trainer(model: Any, settings: Settings, course: Course, curve: Curve) -> LinkTrainer:
    dtype = computing_dtype(settings)
    arguments = TrainingArguments(
        output_dir=str(settings.out / CHECKPOINTS), max_steps=settings.steps, seed=settings.seed,
        per_device_train_batch_size=1, gradient_accumulation_steps=settings.batch, learning_rate=settings.rate,
        lr_scheduler_type="cosine", warmup_steps=max(1, settings.steps // 10), weight_decay=0.0, adam_beta2=0.98,
        save_steps=settings.every, save_total_limit=_KEPT, logging_steps=min(10, settings.every, settings.steps),
        bf16=settings.full_weights and dtype == torch.bfloat16, use_cpu=not torch.cuda.is_available(),
        train_sampling_strategy="sequential", remove_unused_columns=False, report_to=[], disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    if arguments.n_gpu > 1:  # samples are read one by one; the Trainer would put one for each GPU into a batch
        arguments._n_gpu = 1
    return LinkTrainer(
        model, arguments, train_dataset=course, data_collator=partial(collate, dtype=activation_dtype(model)),
        compute_loss_func=answer_loss, callbacks=[curve],
    )  # fmt: skip


def _last_whole(folder: Path) -> str | None:
    """The last checkpoint that was written to its end, which its state is; what a kill left half done goes."""
    while folder.is_dir() and (last := get_last_checkpoint(str(folder))):
        try:
            json.loads((Path(last) / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(last)
        else:
            return str(last)
    return None


def _finish(
    settings: Settings, reader: Reader, model: Any, tuning: Tuning, about: dict[str, Any], cost: dict[str, float],
    curve: Curve, material: Material,
) -> dict[str, Any]:  # fmt: skip
    """Write what others load, and drop the checkpoints."""
    model.save_pretrained(settings.out)
    save_links(reader.model, settings.out)
    if settings.full_weights:
        reader.tokenizer.save_pretrained(settings.out)
    write_tuning(settings.out, tuning)
    report = {**about, **asdict(tuning), **curve.totals(), "training": count(material.training),
              "held_out": count(material.held), "ordinary": cost}  # fmt: skip
    write_card(settings.out, report)
    write_json(settings.out / REPORT, report)
    shutil.rmtree(settings.out / CHECKPOINTS)
    return report
