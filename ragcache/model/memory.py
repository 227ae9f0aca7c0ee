"""An accelerator without memory left: said in one sentence, with the sizes and what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ragcache.errors import OutOfMemory

_ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+ [KMGT]?i?B)")
FEWER_TOKENS = "ask with a smaller --top-k or fewer questions at once, or take a smaller --model or a narrower dtype"
SMALLER_MODEL = "name a smaller one with --model, a narrower dtype, or --device cpu"


@contextmanager
def explain_out_of_memory(device: torch.device, what: str, way_out: str = FEWER_TOKENS) -> Iterator[None]:
    """Do something on a device; where its memory does not suffice, say for what, how much there is, and what to do.

    Parameters
    ----------
    device : torch.device
        Where it is done.
    what : str
        What needs the memory, with its size.
    way_out : str
        What to do instead.

    Raises
    ------
    OutOfMemory
        In the place of PyTorch's own error.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        asked = _ASKED.search(str(error))
        sizes = [f"{asked[1]} more were asked for"] if asked else []
        if device.type == "cuda":
            free, total = torch.cuda.mem_get_info(device)
            held = torch.cuda.memory_allocated(device)
            sizes.append(f"{_gib(free)} of {_gib(total)} GiB are free, and this process holds {_gib(held)}")
        about = f" ({'; '.join(sizes)})" if sizes else ""
        raise OutOfMemory(f"{device} ran out of memory for {what}{about}; {way_out}") from error


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f}"
