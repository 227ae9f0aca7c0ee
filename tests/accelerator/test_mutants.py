"""What the pretend accelerator is for: a way to the device or back that is taken out is missed, or waited for."""

import __future__

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from ragcache_bench.device_parity import QUESTION, encode_for, opened, suit, tiny_reader
from ragcache_bench.pretend_accelerator import Accelerator, pretend_accelerator

import ragcache
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.methods import METHODS
from ragcache.model.decode import Sampling
from ragcache.store import CODECS

#: Where something is taken out: module, name in it, what stood there, what stands there then, and the row it is for.
MUTANTS = [
    ("model.reader", "Reader._tokens", "upload(ids, self.device)", "ids", "naive"),
    ("model.plan", "ForwardPlan.on", "upload(slots, device)", "slots", "naive"),
    ("model.plan", "ForwardPlan.keep", "upload(rows, self.slots.device)", "rows.cpu()", "cacheblend-gradual"),
    ("model.rope", "KeyRotator.rotate", "upload(cos, keys.device)", "cos", "naive"),
    ("model.prefill_context", "PrefillContext.__post_init__", "upload(", "(lambda values, _: values)(", "naive"),
    ("model.prefill_context", "PrefillContext._settle", ".cpu()", "", "cacheblend-gradual"),
    ("model.buffer", "KVBuffer.place_from", "upload_views(layers, device)", "list(layers)", "naive"),
    ("model.buffer", "KVBuffer.place_from", "layers.on(device)", "layers", "naive"),
    ("model.links", "LinkTokens.embed", "upload(", "(lambda values, _: values)(", "kvlink"),
    ("model.decode", "_chooser", "torch.Generator(device)", "torch.Generator()", "naive"),
    ("model.decode", "_chooser", "upload([seen if looks_back else []], device)", "torch.tensor([seen])", "naive"),
    ("select.key_deviation", "KeyDeviation.scores", ".cpu()", "", "cacheblend"),
    ("select.key_deviation", "KeyDeviation.scores", "upload(rows, key.device)", "rows", "cacheblend"),
    ("schedule.reselect", "_states", "upload(kv.extras[HIDDEN], states.device)", "kv.extras[HIDDEN]", "droidspeak"),
    ("schedule.reselect", "_dense", ".cpu()", "", "droidspeak"),
    ("schedule.progressive_pruning", "_Leaving.__init__", "upload(p.selectable, p.reader.device)", "p.selectable",
     "cacheblend-gradual"),
    ("attend.protocol", "KeyIndices.of", "upload(", "(lambda values, _: values)(", "ape"),
]  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """Engines on the accelerator, over raw KV and over int8."""

    accelerator: Accelerator
    engines: Sequence[tuple[Engine, list[Chunk]]]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pretend_accelerator(Path(ragcache.__file__).parent) as accelerator:
        reader = tiny_reader(4, "cuda")
        raw, int8 = (tmp_path_factory.mktemp("mutants") for _ in range(2))
        with opened(raw, reader) as plain, opened(int8, reader, CODECS["int8"]) as packed:
            for name in {row for *_, row in MUTANTS}:
                encode_for(*plain, METHODS[name])
            encode_for(*packed, METHODS["naive"])
            yield Stage(accelerator, (plain, packed))


def ask(stage: Stage, row: str) -> int:
    """Answer by a row, greedily and by drawing, over every codec that there is KV of; how often the host has waited."""
    method = METHODS[row]
    share = None if method.recompute is None else 0.15
    stage.accelerator.restart()
    for engine, chunks in stage.engines if row == "naive" else stage.engines[:1]:
        suit(engine.reader, method)
        engine.index.release()
        for sampling in (Sampling(2), Sampling(2, temperature=1.0, repetition_penalty=1.1, seed=1)):
            engine.answer(QUESTION, chunks, method=method, recompute=share, sampling=sampling)
    return stage.accelerator.waits.total()


@pytest.fixture(scope="module")
def sound(stage: Stage) -> dict[str, int]:
    """How often the host waits for each row as it is."""
    return {row: ask(stage, row) for row in {row for *_, row in MUTANTS}}


@pytest.mark.parametrize(("module", "name", "old", "new", "row"), MUTANTS)
def test_a_way_that_is_taken_out_is_missed_or_waited_for(
    stage: Stage, sound: dict[str, int], monkeypatch: pytest.MonkeyPatch,
    module: str, name: str, old: str, new: str, row: str,
) -> None:  # fmt: skip
    mutate(monkeypatch, f"ragcache.{module}", name, old, new)
    refused = ""
    try:
        waits = ask(stage, row)
    except (RuntimeError, TypeError) as error:
        waits, refused = 0, str(error)
    assert waits > sound[row] or re.search("same device|'cuda' device|convert cuda:0", refused), refused


def mutate(monkeypatch: pytest.MonkeyPatch, module: str, name: str, old: str, new: str) -> None:
    """Put a function's source, with something replaced, in the function's place."""
    home = importlib.import_module(module)
    *owners, leaf = name.split(".")
    owner = getattr(home, owners[0]) if owners else home
    source = textwrap.dedent(inspect.getsource(getattr(owner, leaf)))
    assert old in source, f"{name} has no {old!r}"
    flags = __future__.annotations.compiler_flag  # names that are imported for annotations only are not there
    made: dict[str, object] = {}
    exec(compile(source.replace(old, new), name, "exec", flags), vars(home), made)
    monkeypatch.setattr(owner, leaf, made[leaf])
