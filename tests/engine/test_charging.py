"""What a report charges is what was computed: every K and V that any model makes, counted where it is kept."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from matrix import RowStage, stage
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from ragcache.encode import PromptEncoder
from ragcache.method import Method
from ragcache.methods import list_methods
from ragcache.schedule.behind_document import BehindDocument


@dataclass(frozen=True)
class Made:
    """The K and V that one layer made in one forward: `slots` of the tokens, in the cache they went to."""

    model: PreTrainedModel
    cache: Cache
    layer: int
    slots: tuple[int, ...]

    @property
    def flops(self) -> float:
        """Of the whole layer: it is charged in full once its keys are made, wherever the forward stops."""
        config = self.model.config
        heads, groups, wide = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        matrices = config.hidden_size * (2 * heads * wide + 2 * groups * wide + 3 * config.intermediate_size)
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        most = config.sliding_window if kinds[self.layer] == "sliding_attention" else max(self.slots) + 1
        return sum(2 * matrices + 4 * heads * wide * min(slot + 1, most) for slot in self.slots)


class Count:
    """What models compute: the hooks know nothing of ragcache, but that a cache's plan says which slots rows have."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.heads = 0.0  # FLOPs of output embeddings
        self._running = threading.local()  # an auxiliary model may run in a thread of its own

    def enters(self, module: Any, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, PreTrainedModel):
            self._running.model = module
            self._running.head = module.get_output_embeddings() or getattr(self._running, "head", None)
        elif module is getattr(self._running, "head", None):
            rows, wide = inputs[0].shape[-2:]
            self.heads += 2 * rows * wide * module.out_features

    def updates(self, cache: Cache, keys: Any, layer: int) -> None:
        plan, rows = getattr(cache, "plan", None), keys.shape[-2]
        first = cache.get_seq_length(layer) if plan is None else 0
        slots = range(first, first + rows) if plan is None else plan.slots.tolist()
        assert len(slots) == rows
        self.made.append(Made(self._running.model, cache, layer, tuple(slots)))

    @property
    def flops(self) -> float:
        return self.heads + sum(one.flops for one in self.made)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Count]:
    count, update = Count(), Cache.update

    def watched(cache: Cache, keys: Any, values: Any, layer_idx: int, *rest: Any, **more: Any) -> Any:
        count.updates(cache, keys, layer_idx)
        return update(cache, keys, values, layer_idx, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "update", watched)
        hook = register_module_forward_pre_hook(count.enters)
        try:
            yield count
        finally:
            hook.remove()


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RowStage]]:
    made: dict[str, RowStage] = {}

    def get(architecture: str) -> RowStage:
        if architecture not in made:
            made[architecture] = stage(tmp_path_factory.mktemp("charging"), architecture)
        return made[architecture]

    yield get
    for one in made.values():
        one.engine.index.close()


def shares(row: Method) -> tuple[float | None, ...]:
    return (None,) if row.recompute is None else (None, 0.4, 1.0)


@pytest.mark.parametrize("case", ["hits", "hole"])
@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
@pytest.mark.parametrize("row", list_methods().values(), ids=lambda row: row.name)
def test_charged_is_what_was_computed(
    stages: Callable[[str], RowStage], monkeypatch: pytest.MonkeyPatch, row: Method, architecture: str, case: str
) -> None:
    one = stages(architecture)
    one.prefill(row, "hits")  # the system prefix is stored; an auxiliary model is loaded
    with counted(monkeypatch) as full:
        one.prefill(list_methods()["full"], case)
    for share in shares(row):
        chunks = one.set(row, case)
        with counted(monkeypatch) as count:
            ready = one.engine.prefill("Who is she?", chunks, method=row, recompute=share)
        assert ready.report.charged_flops == pytest.approx(count.flops / full.flops, rel=1e-6), share
        layers, report, prompt = one.engine.reader.layers, ready.report, ready.prompt
        reused, made_slots = set[int](), set[int]()  # slots of what stale KV stands in, and of what was made now
        for segment, chunk in zip(prompt.chunks(), report.chunks, strict=True):
            left_fresh = row.encode is None or row.encode.exact_only or isinstance(row.encode, PromptEncoder)
            made_now = chunk.cache == "miss" and not left_fresh
            if chunk.cache == "hit" or made_now:
                reused |= set(range(prompt.slots[segment], prompt.slots[segment + 1]))
            if made_now:
                made_slots |= set(range(prompt.slots[segment], prompt.slots[segment + 1]))
        segments = zip(prompt.slots, prompt.segments, strict=False)
        links = {slot for at, one in segments if one.link for slot in range(at, at + len(one))}
        answering = ready.context.buffer if ready.context else None
        # A token-layer is charged once: what a selector has computed of a layer serves, however often it comes again,
        # and what was made now is computed once more.
        afresh_at = {(made.layer, slot) for made in count.made if made.cache is answering for slot in made.slots}
        again = sum(slot in (reused | links) - made_slots for _, slot in afresh_at)
        elsewhere = [
            len(made.slots) for made in count.made
            if reused and made.model.config == one.engine.reader.model.config and made.cache is not answering
        ]  # fmt: skip
        afresh = len(made_slots) * layers
        behind = sum(elsewhere) - afresh if isinstance(row.schedule, BehindDocument) else 0
        if behind:  # it recomputes in a copy of the prompt that holds more
            again += behind - layers * sum(bool(ready.recomputed[slot]) for slot in made_slots)
        assert report.charged == pytest.approx((again + afresh) / max(1, len(reused) * layers)), share
