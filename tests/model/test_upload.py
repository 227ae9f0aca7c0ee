"""What goes to a device in one copy comes out there as it was."""

from pathlib import Path

import pytest
import torch
from ragcache_bench.pretend_accelerator import Accelerator, pretend_accelerator
from torch import Tensor

from ragcache.model.buffer import KVBuffer
from ragcache.model.upload import download, upload_views
from ragcache.store import CODECS, Blob, pack, unpack

CUDA = torch.device("cuda", 0)


def copies(accelerator: Accelerator, run: object) -> int:
    """How often something goes to the device."""
    done, cross = [], accelerator._cross
    accelerator._cross = lambda source, **how: (done.append(source), cross(source, **how))  # type: ignore[method-assign]
    run()  # type: ignore[operator]
    return len(done)


@pytest.mark.parametrize(
    "views",
    [
        lambda buffer: [buffer[0:256].view(torch.float32).view(2, 2, 4, 4), buffer[256:512].view(torch.float32)],
        lambda buffer: [buffer[64:128].view(torch.bfloat16), buffer[128:133], buffer[136:144].view(torch.float64)],
        lambda buffer: [buffer[0:256].view(torch.float32).view(2, 2, 4, 4)[:, :, :3], buffer[256:256]],
    ],
)
def test_views_of_one_buffer_go_by_one_copy(views: object) -> None:
    tensors: list[Tensor] = views(torch.arange(1024, dtype=torch.int64).to(torch.uint8)[64:])  # type: ignore[operator]
    found: list[Tensor] = []
    with pretend_accelerator(Path(__file__).parent) as accelerator:
        assert copies(accelerator, lambda: found.extend(upload_views(tensors, CUDA))) == 1
        found = [one.cpu() for one in found]
        assert not accelerator.hazards
    for one, other in zip(tensors, found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


def test_tensors_of_several_buffers_go_one_by_one() -> None:
    with pretend_accelerator(Path(__file__).parent) as accelerator:
        assert copies(accelerator, lambda: upload_views([torch.ones(2), torch.ones(3)], CUDA)) == 2


@pytest.mark.parametrize("codec", ["raw", "int8"])
def test_a_file_s_kv_is_uploaded_once_whatever_its_layers(codec: str) -> None:
    made = torch.Generator().manual_seed(0)
    layers = tuple(torch.randn(2, 2, 5, 32, generator=made) for _ in range(6))
    parts = pack(Blob("k" * 64, tuple(range(5)), 0, layers), CODECS[codec])
    blob = unpack(torch.frombuffer(bytearray(b"".join(map(bytes, parts))), dtype=torch.uint8), "k" * 64)
    here, there = KVBuffer(6, 8), KVBuffer(6, 8)
    here.place_from(1, blob.layers, torch.device("cpu"))
    with pretend_accelerator(Path(__file__).parent) as accelerator:
        assert copies(accelerator, lambda: there.place_from(1, blob.layers, CUDA)) == 1
        assert not accelerator.waits
        found = [layer.cpu() for layer in there.read(1, 6)]
    for ours, theirs in zip(found, here.read(1, 6), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("heads", "waits"), [((2, 2, 2), 1), ((2, 2, 1), 3)])
def test_layers_that_are_alike_come_back_by_one_copy(heads: tuple[int, ...], waits: int) -> None:
    layers = [torch.rand(2, n, 5, 8) for n in heads]
    with pretend_accelerator(Path(__file__).parents[2]) as accelerator:
        there = [layer.to("cuda", non_blocking=True) for layer in layers]
        found = download(there)
        assert accelerator.waits.total() == waits
    assert all(torch.equal(*both) for both in zip(found, layers, strict=True))
    assert all(one is other for one, other in zip(download(layers), layers, strict=True))
