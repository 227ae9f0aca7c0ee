"""Whether a model's chunk KV can be reused, and what reuse costs it: what `ragcache doctor` reports."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.benchmark import Timer

from ragcache.chunks import Chunk
from ragcache.encode import Alone, Fused
from ragcache.engine import Engine
from ragcache.index import Index
from ragcache.model.reader import Reader

FP32_TOLERANCE = 1e-4
_NOISE_FACTOR = 2.0
_RECOMPUTE = 0.15
_ROWS = 256  # of a product that is timed: a small selective recompute

_QUESTION = "When does the restored mill open, and who pays for it?"
_NOTES = (
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
    """A way of answering: KL(full prefill || it) of the first token in nats, and whether its best token is the same."""

    name: str
    kl: float
    same_token: bool


def layer_groups(reader: Reader) -> list[LayerGroup]:
    """What the load-time probe found, layers of the same layout together."""
    layouts = reader.rotator.layouts
    return [
        LayerGroup(
            layers=tuple(i for i, other in enumerate(layouts) if other == layout),
            pairing=layout.pairing,
            dims=2 * len(layout.inv_freq),
            offset=layout.offset,
            slowest=min(layout.inv_freq, default=0.0),
        )
        for layout in dict.fromkeys(layouts)
    ]


def check_full_recompute(reader: Reader) -> FullRecompute:
    """Load every chunk, recompute all of it, and compare with stock full prefill.

    The tolerance is 1e-4 in fp32. In narrower dtypes it is what the model's own rounding allows: twice the largest
    difference between stock full prefill and itself, in two steps or with eager attention.
    """
    with _small_index(reader) as (engine, chunks):
        ours = engine.prefill(_QUESTION, chunks, method="epic", recompute=1.0)
    ids = ours.prompt.token_ids
    full, _ = reader.stock(ids)
    tolerance = FP32_TOLERANCE
    if reader.model.dtype != torch.float32:
        cuts = [len(ids) * part // 4 for part in (1, 2, 3)]
        noisy = [_two_steps(reader, ids, cut) for cut in cuts] + [reader.stock(ids, attention="eager")[0]]
        tolerance = max(tolerance, _NOISE_FACTOR * max(_distance(full, other) for other in noisy))
    return FullRecompute(_distance(full, ours.logits), tolerance)


def ladder(reader: Reader) -> list[Rung]:
    """From no reuse to raw KV to fused KV, on a small text whose chunks refer to each other."""
    with _small_index(reader) as (engine, chunks):
        reused = {
            "raw KV": engine.prefill(_QUESTION, chunks, method="naive"),
            "fused KV": engine.prefill(_QUESTION, chunks, method="fusionrag", recompute=0.0),
            f"fused KV, {_RECOMPUTE:.0%} recomputed": engine.prefill(
                _QUESTION, chunks, method="fusionrag", recompute=_RECOMPUTE
            ),
        }
    ids = reused["raw KV"].prompt.token_ids
    full, _ = reader.stock(ids)
    logits = {"no reuse, in two steps": _two_steps(reader, ids, len(ids) // 2)}
    logits |= {name: answer.logits for name, answer in reused.items()}
    return [Rung(name, _kl(full, other), bool(full.argmax() == other.argmax())) for name, other in logits.items()]


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
def _small_index(reader: Reader) -> Iterator[tuple[Engine, list[Chunk]]]:
    """The built-in text, encoded both ways; every chunk's neighbours are all others, nearest first."""
    with tempfile.TemporaryDirectory() as folder, Index(folder, reader) as index:
        index.put("notes", "", [(text, 0, len(text)) for text in _NOTES], {})
        ids = [row.id for row in index.catalog.all_chunks()]

        def neighbours(chunk: str, count: int) -> Sequence[str]:
            here = ids.index(chunk)
            others = sorted((i for i in range(len(ids)) if i != here), key=lambda i: abs(i - here))
            return [ids[i] for i in others[:count]]

        for encoder in (Alone(), Fused()):
            for _ in index.encode(encoder, neighbours=neighbours):
                pass
        yield Engine(reader, index), index.chunks(ids)


def _two_steps(reader: Reader, ids: Sequence[int], cut: int) -> Tensor:
    """Stock full prefill, (vocabulary,) fp32 logits, as two forwards: its difference to one is rounding alone."""
    return reader.stock(ids[cut:], reader.stock(ids[:cut])[1])[0]


def _distance(one: Tensor, other: Tensor) -> float:
    difference = float((one - other).abs().max())
    return difference if math.isfinite(difference) else math.inf


def _kl(full: Tensor, other: Tensor) -> float:
    wanted, seen = full.double().log_softmax(-1), other.double().log_softmax(-1)  # (vocabulary,) each
    return float((wanted.exp() * (wanted - seen)).sum().clamp_min(0))
