"""Parts of `gpu_check` that hold a device against the CPU, and what attention by cuDNN and ingestion take there."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from ragcache.encode import Alone
from ragcache.engine.engine import Engine
from ragcache.index.index import Index
from ragcache.method import Method
from ragcache.methods import METHODS
from ragcache.model.reader import Reader
from ragcache.store import CODECS
from ragcache_bench.device_parity import (
    WAYS,
    Outcome,
    answer,
    encode_for,
    encode_rows,
    opened,
    prefill,
    share_of,
    tiny_reader,
)  # fmt: skip
from ragcache_bench.speed.shapes import random_reader, random_texts

TOLERANCE, NOISE_FACTOR = 1e-4, 3.0  # reused KV is rounded once more than fresh KV: measured 1.6 on a CPU
LAYERS, DECODED = 4, 16
#: Rows that choose without looking at the model, so that a narrower dtype chooses the same.
FIXED = ("naive", "epic", "link0", "ape")
_DRAWN = "sampling"  # each kind of device draws by numbers of its own


def rows_against_cpu(device: str) -> list[dict[str, Any]]:
    """Every row at a share of .15 and two decoded tokens, fp32, over KV that the CPU made, and the device's own."""
    rows = list(METHODS.values())
    with tempfile.TemporaryDirectory() as place:
        there, here = Path(place) / "cpu", Path(place) / "device"
        encode_rows(there, tiny_reader(LAYERS, "cpu"), rows)
        expected = _prefill_all(there, tiny_reader(LAYERS, "cpu"), rows)
        reader = tiny_reader(LAYERS, device)
        encode_rows(here, reader, rows)
        found = {"cpu": _prefill_all(there, reader, rows), "device": _prefill_all(here, reader, rows)}
    return [
        {
            "method": row.name,
            "recompute": share_of(row),
            "kv_made_on": made,
            **_compare(one[row.name], expected[row.name]),
        }
        for made, one in found.items()
        for row in rows
    ]


def ways_against_cpu(device: str) -> list[dict[str, Any]]:
    """Streams, batches, drafts, histories and the memory tier: the CPU's tokens. What is drawn is repeatable."""
    with tempfile.TemporaryDirectory() as place:
        encode_rows(Path(place), tiny_reader(LAYERS, "cpu"), [METHODS["auto"]])
        with opened(Path(place), tiny_reader(LAYERS, "cpu")) as stage:
            expected = {way: answer(*stage, way) for way in WAYS}
        with opened(Path(place), tiny_reader(LAYERS, device)) as stage:
            expected[_DRAWN] = answer(*stage, _DRAWN)
            return [{"way": way, "passed": answer(*stage, way) == expected[way]} for way in WAYS]


def codecs_against_cpu(device: str) -> list[dict[str, Any]]:
    """KV that is stored in fewer bytes, decoded on the device and on the CPU."""
    rows, found = [METHODS["naive"], METHODS["auto"]], []
    for codec in CODECS.values():
        with tempfile.TemporaryDirectory() as place:
            with opened(Path(place), tiny_reader(LAYERS, "cpu"), codec) as stage:
                for row in rows:
                    encode_for(*stage, row)
                expected = {row.name: prefill(*stage, row, share_of(row)) for row in rows}
            with opened(Path(place), tiny_reader(LAYERS, device), codec) as stage:
                for row in rows:
                    compared = _compare(prefill(*stage, row, share_of(row)), expected[row.name])
                    found.append({"codec": codec.name, "method": row.name, **compared})
    return found


def narrow_against_fp32(device: str, dtype: torch.dtype = torch.bfloat16) -> list[dict[str, Any]]:
    """A narrow dtype from ingestion on, against the same row in fp32: ours may be three times as far off as stock."""
    rows = [METHODS[name] for name in ("full", *FIXED)]
    outcomes = []
    for kind in (dtype, torch.float32):
        with tempfile.TemporaryDirectory() as place:
            reader = tiny_reader(LAYERS, device, kind)
            encode_rows(Path(place), reader, rows)
            outcomes.append(_prefill_all(Path(place), reader, rows))
    narrow, wide = outcomes
    errors = {row.name: float((narrow[row.name].logits[0] - wide[row.name].logits[0]).abs().max()) for row in rows}
    allowed = NOISE_FACTOR * errors["full"]
    return [
        {"method": name, "difference": errors[name], "tolerance": allowed, "passed": errors[name] <= allowed}
        for name in FIXED
    ]


def cudnn_on_and_off(
    kind: str, sizes: dict[str, Any], context: int, device: str, *, repeats: int = 5
) -> list[dict[str, Any]]:
    """Milliseconds of a prefill and of decoded tokens, ours and stock's, with cuDNN's attention and without."""
    reader = random_reader(kind, sizes, device=device)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place, Index(place, reader) as index:
        index.put("random words", "", [(text, 0, len(text)) for text in random_texts(context // 512)], {})
        chunks = index.chunks(list(index.encode(Alone())))
        engine = Engine(reader, index)
        for on in (False, True):
            for method in ("full", "naive"):

                def begin(method: str = method) -> Callable[[int], object]:
                    return engine.prefill("w1", chunks, method=method, max_new_tokens=DECODED + 1).step

                with _cudnn(on):
                    rows.append({"cudnn": on, "method": method, "keys": context, **_time(begin, reader, repeats)})
    return rows


def ingestion(kind: str, sizes: dict[str, Any], chunks: int, device: str) -> list[dict[str, Any]]:
    """Tokens that are encoded and stored per second, and how many are encoded where nothing is stored."""
    reader = random_reader(kind, sizes, device=device)
    with tempfile.TemporaryDirectory() as place, Index(place, reader) as index:
        index.put("random words", "", [(text, 0, len(text)) for text in random_texts(chunks)], {})
        ids = [chunk.segment.token_ids for chunk in index.chunks([one.id for one in index.catalog.all_chunks()])]
        reader.encode(ids[0])  # a warm-up
        alone = _seconds(reader, lambda: [reader.encode(one) for one in ids])
        stored = _seconds(reader, lambda: list(index.encode(Alone())))
    tokens = sum(map(len, ids))
    return [{"tokens": tokens, "tokens_per_s": tokens / stored, "tokens_per_s_without_storing": tokens / alone}]


def _prefill_all(folder: Path, reader: Reader, rows: Sequence[Method]) -> dict[str, Outcome]:
    with opened(folder, reader) as stage:
        return {row.name: prefill(*stage, row, share_of(row)) for row in rows}


def _compare(ours: Outcome, theirs: Outcome) -> dict[str, Any]:
    difference, same = ours.differs(theirs), ours.chose_as(theirs)
    passed = same and difference <= TOLERANCE
    return {"difference": difference, "tolerance": TOLERANCE, "same_tokens": same, "passed": passed}


@contextmanager
def _cudnn(on: bool) -> Iterator[None]:
    """Attention by cuDNN allowed or not; afterwards as it was."""
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(on)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def _time(begin: Callable[[], Callable[[int], object]], reader: Reader, repeats: int) -> dict[str, float]:
    """Medians behind a warm-up: of a prefill, of the first token behind it, and of each further one."""
    prefills, firsts, others = [], [], []
    for turn in range(repeats + 1):
        steps: list[Callable[[int], object]] = []
        taken = _seconds(reader, lambda steps=steps: steps.append(begin()))  # type: ignore[misc]
        tokens = [_seconds(reader, lambda step=steps[0]: step(5)) for _ in range(DECODED)]  # type: ignore[misc]
        if turn:
            prefills.append(taken)
            firsts.append(tokens[0])
            others += tokens[1:]
    ms = (median(one) * 1e3 for one in (prefills, firsts, others))
    return dict(zip(("prefill_ms", "first_step_ms", "step_ms"), ms, strict=True))


def _seconds(reader: Reader, run: Callable[[], object]) -> float:
    """Of an action, and of what it leaves the device to do."""
    began = time.perf_counter()
    run()
    if reader.device.type == "cuda":
        torch.cuda.synchronize(reader.device)
    return time.perf_counter() - began
