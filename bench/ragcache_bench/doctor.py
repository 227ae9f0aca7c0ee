"""Whether a model's chunk KV can be reused, and what reuse costs it: what `ragcache doctor` reports."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.benchmark import Timer

from ragcache import methods
from ragcache.encode import Alone, Encoder, Fused
from ragcache.engine.engine import Engine
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.reader import Reader
from ragcache_bench.metrics import divergence

FP32_TOLERANCE = 1e-4
_NOISE_FACTOR = 2.0
_RECOMPUTE = 0.15
_ROWS = 256  # of a product that is timed: a small selective recompute

_MILL = (
    "The Alder Mill stands on the east bank of the river, two kilometres north of the town. It ground rye and "
    "barley for three centuries, until the flood of 1954 broke its wheel and carried the lower gate away.",
    "A trust bought it twelve years ago. The members cleared the race by hand, numbered every beam, and stored the "
    "stones in a barn nearby. They meet on the first Monday of each month and publish what they spend.",
    "The wheel is being rebuilt from oak by a workshop in the next valley. It has forty paddles, each as wide as a "
    "door. The first half was hung in autumn; the other half waits for drier weather.",
    "The budget is two hundred and ten thousand. Half of it comes from the county, the other half from the sale of "
    "flour and from visitors. The county asked for a yearly report in return.",
    "It opens on the third of May with a market in the yard. Schools may come in the week before. The miller will "
    "show how the stones are dressed, and bread will be baked in the old oven.",
    "Parking is at the football ground. A bus runs every half hour from the station, and the path along the river "
    "is lit until ten in the evening. Dogs are welcome outside but not on the milling floor.",
)
_FERRY = (
    "The Otter is the ferry across the sound. She was built in a yard that no longer exists, carries forty cars and "
    "two hundred people, and has been painted white since the company changed hands.",
    "In summer she leaves every hour from seven in the morning until ten at night. In winter there are six crossings a "
    "day, and none when the wind is above nine. A red flag at the pier says so.",
    "Those who live on the island go aboard first, then buses, then everybody else in the order of arrival. Whoever "
    "wants a place for sure books it by telephone on the day before.",
    "A crossing is free for people on foot. A car pays eleven, a lorry thirty, and a bicycle two. Half of that goes "
    "into a fund for the next ship, which will run on batteries.",
)
_DOCUMENTS = {"mill": _MILL, "ferry": _FERRY}
#: Each with the chunks that are read for it, by number over both documents, the most similar first: hardly ever in the
#: order in which they were written, since retrieval does not keep it.
_QUESTIONS = (
    ("When does the restored mill open, and who pays for it?", (4, 3, 0, 2)),
    ("Who bought the mill, and how long ago?", (1, 0, 3, 4)),
    ("What is the new wheel made of?", (2, 0, 1, 3)),
    ("How do visitors get there without a car?", (5, 8, 6, 4)),
    ("What happened to the old wheel?", (0, 2, 4, 1)),
    ("How often does the ferry cross in winter?", (7, 6, 9, 5)),
    ("Who goes aboard first?", (8, 7, 6, 9)),
    ("What does a lorry pay for the crossing?", (9, 6, 8, 3)),
)


@dataclass(frozen=True)
class LayerGroup:
    """Layers that rotate their keys alike: `dims` rotated dimensions from `offset` on, `slowest` radians a token."""

    layers: tuple[int, ...]
    pairing: str
    dims: int
    offset: int
    slowest: float


@dataclass(frozen=True)
class FullRecompute:
    """Recomputing everything against stock full prefill of the same ids: the largest difference of a logit."""

    difference: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.difference <= self.tolerance


@dataclass(frozen=True)
class Rung:
    """A way of answering the built-in questions, compared with full prefill.

    Attributes
    ----------
    name : str
        What it is.
    kl : float
        Mean KL(full prefill || it) of the first token, nats.
    changed, questions : int
        On how many of the questions the most likely first token is another one.
    """

    name: str
    kl: float
    changed: int
    questions: int


@dataclass(frozen=True)
class Verdict:
    """Whether ragcache can serve a model, and what reuse by the default changes.

    Attributes
    ----------
    works : bool
        Whether recomputing everything is full prefill.
    changed, questions : int
        As of the default's `Rung`.
    words : str
        The same for people.
    """

    works: bool
    changed: int
    questions: int
    words: str


def layer_groups(reader: Reader) -> list[LayerGroup]:
    """What the load-time probe found of layers with keys, those of the same layout together."""
    layouts, keyed = reader.rotator.layouts, [layer for layer in range(reader.layers) if layer not in reader.states]
    return [
        LayerGroup(
            layers=tuple(layer for layer, other in zip(keyed, layouts, strict=False) if other == layout),
            pairing=layout.pairing,
            dims=2 * len(layout.inv_freq),
            offset=layout.offset,
            slowest=min(map(abs, layout.inv_freq), default=0.0),
        )
        for layout in dict.fromkeys(layouts)
    ]


def check_full_recompute(reader: Reader) -> FullRecompute:
    """Load every chunk, recompute all of it, and compare with stock full prefill.

    The tolerance is 1e-4 in fp32. In narrower dtypes it is what the model's own rounding allows: twice the largest
    difference between stock full prefill and itself, in two steps or with eager attention.
    """
    (question, _), mill = _QUESTIONS[0], len(_MILL)
    with _small_index(reader, [Alone()]) as (engine, chunks):
        ours = engine.prefill(question, chunks[:mill], method="epic", recompute=1.0)
    ids = ours.prompt.token_ids
    full, _ = reader.stock(ids)
    tolerance = FP32_TOLERANCE
    if reader.model.dtype != torch.float32:
        cuts = [len(ids) * part // 4 for part in (1, 2, 3)]
        noisy = [_two_steps(reader, ids, cut) for cut in cuts] + [reader.stock(ids, attention="eager")[0]]
        tolerance = max(tolerance, _NOISE_FACTOR * max(_distance(full, other) for other in noisy))
    return FullRecompute(_distance(full, ours.logits), tolerance)


def ladder(reader: Reader) -> list[Rung]:
    """The default first, then from no reuse to raw KV to fused KV, over two documents; rows of its tuning last."""
    default = methods.find_method(methods.DEFAULT_METHOD)
    ways: dict[str, tuple[str, float | None]] = {
        f"the default, {default.name}": (default.name, None),
        "no reuse, in two steps": ("", None),
        "raw KV": ("naive", None),
        "fused KV": ("fusionrag", 0.0),
    }
    if not reader.states:  # of which all is recomputed or nothing
        ways[f"fused KV, {_RECOMPUTE:.0%} recomputed"] = ("fusionrag", _RECOMPUTE)
    tuned_for = [row for row in methods.list_methods().values() if row.finetuned and row.suits(reader.tuning)]
    ways |= {f"as it was tuned, {row.name}": (row.name, None) for row in tuned_for}
    seen: dict[str, list[tuple[float, bool]]] = {name: [] for name in ways}
    with _small_index(reader, [Alone(), Fused(), *(row.encode for row in (default, *tuned_for) if row.encode)]) as (
        engine,
        chunks,
    ):
        for question, read in _QUESTIONS:
            context = [chunks[number] for number in read]
            ids = engine.prefill(question, context, method="naive").prompt.token_ids
            full, _ = reader.stock(ids)
            for name, (method, share) in ways.items():
                logits = (
                    engine.prefill(question, context, method=method, recompute=share).logits
                    if method
                    else _two_steps(reader, ids, len(ids) // 2)
                )
                seen[name].append((divergence(full, logits), bool(full.argmax() != logits.argmax())))
    return [
        Rung(name, fmean(kl for kl, _ in found), sum(changed for _, changed in found), len(found))
        for name, found in seen.items()
    ]


def judge(check: FullRecompute, rungs: Sequence[Rung]) -> Verdict:
    """What the check and the ladder come to."""
    default, rounding = rungs[0], rungs[1]
    if not check.passed:
        words = "this model does not work with ragcache: recomputing everything is not full prefill"
        return Verdict(False, default.changed, default.questions, words)
    also = f" (rounding alone in {rounding.changed})" if rounding.changed else ""
    words = (
        "this model works with ragcache; reuse by the default changes the first token in "
        f"{default.changed} of {default.questions} built-in questions{also}"
    )
    return Verdict(True, default.changed, default.questions, words)


def dtype_slowdown(reader: Reader) -> float | None:
    """How often a matrix product in fp32 fits into one in the model's dtype, on a CPU; None where that is no question.

    A processor without instructions for a narrow dtype widens every number before it computes.
    """
    dtype, width = reader.model.dtype, reader.model.config.get_text_config().hidden_size
    if reader.device.type != "cpu" or dtype == torch.float32:
        return None
    rows, matrix = torch.randn(_ROWS, width), torch.randn(4 * width, width)
    narrow = _seconds(rows.to(dtype), matrix.to(dtype))
    return narrow / _seconds(rows, matrix)


def _seconds(rows: Tensor, matrix: Tensor) -> float:
    product = {"linear": F.linear, "rows": rows, "matrix": matrix}
    return Timer("linear(rows, matrix)", globals=product, num_threads=torch.get_num_threads()).timeit(5).mean


@contextmanager
def _small_index(reader: Reader, encoders: Sequence[Encoder]) -> Iterator[tuple[Engine, list[Chunk]]]:
    """The built-in documents, encoded; a chunk's neighbours are the others of its document, nearest first."""
    with tempfile.TemporaryDirectory() as folder, Index(folder, reader) as index:
        for source, texts in _DOCUMENTS.items():
            index.put(source, "", [(text, 0, len(text)) for text in texts], {})
        rows = [index.catalog.document_by_source(source) for source in _DOCUMENTS]
        groups = [[chunk.id for chunk in index.catalog.chunks_of(row.id)] for row in rows if row]

        def neighbours(chunk: str, count: int) -> Sequence[str]:
            own = next(group for group in groups if chunk in group)
            here = own.index(chunk)
            others = sorted((i for i in range(len(own)) if i != here), key=lambda i: abs(i - here))
            return [own[i] for i in others[:count]]

        for encoder in encoders:
            for _ in index.encode(encoder, neighbours=neighbours):
                pass
        yield Engine(reader, index), index.chunks([name for group in groups for name in group])


def _two_steps(reader: Reader, ids: Sequence[int], cut: int) -> Tensor:
    """Stock full prefill, (vocabulary,) fp32 logits, as two forwards: its difference to one is rounding alone."""
    return reader.stock(ids[cut:], reader.stock(ids[:cut])[1])[0]


def _distance(one: Tensor, other: Tensor) -> float:
    difference = float((one - other).abs().max())
    return difference if math.isfinite(difference) else math.inf
