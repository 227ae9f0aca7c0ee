"""KVLink's link tokens (2502.16002): embeddings of their own, trained beside the weights."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ragcache.model.tuning import LINKS

NAME = "ragcache_links"  # of the parameter, in the model that it is trained with


def add_links(model: Any, documents: int, links: int) -> None:
    """Give a model a parameter of (documents, links, hidden size), fp32; it begins like embeddings of tokens."""
    table: Tensor = model.get_input_embeddings().weight.detach().float()  # (vocabulary, hidden)
    drawn = torch.randn(documents, links, table.shape[1], device=table.device)
    model.register_parameter(NAME, torch.nn.Parameter(table.mean(0) + table.std(0) * drawn))


def activation_dtype(model: Any) -> torch.dtype:
    """What a model computes in; its own `dtype` is that of its first parameter, which link tokens would be."""
    found: torch.dtype = model.get_input_embeddings().weight.dtype
    return found


def embed(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """The same inputs of a model, with the embeddings of link tokens in place of token ids, where there are any."""
    given = dict(inputs)
    link = given.pop("link")  # (1, T)
    if not (link >= 0).any():
        return given
    table: Tensor = getattr(model, NAME)
    words = model.get_input_embeddings()(given.pop("input_ids"))  # (1, T, hidden)
    rows = table.flatten(0, 1)[link.clamp(min=0)].to(words.dtype)
    return given | {"inputs_embeds": torch.where((link >= 0)[..., None], rows, words)}


def save_links(model: Any, folder: Path) -> None:
    """Write the link embeddings, if a model has them."""
    if hasattr(model, NAME):
        save_file({"links": getattr(model, NAME).detach().float().cpu().contiguous()}, folder / LINKS)


@torch.no_grad()
def load_links(model: Any, folder: Path) -> None:
    """Read them back."""
    if hasattr(model, NAME):
        getattr(model, NAME).copy_(load_file(folder / LINKS)["links"])
