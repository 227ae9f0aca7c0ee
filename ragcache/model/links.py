"""Link tokens (KVLink, 2502.16002): trained embeddings of no text, behind a prompt's chunks, with ids of their own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ragcache.errors import InvalidArgument, UnusableAdapter, finetune
from ragcache.model.tuning import LINKS, Tuning
from ragcache.model.upload import upload

_NAME = "links"  # of the one tensor in the file


@dataclass(frozen=True, eq=False)
class LinkTokens:
    """The link tokens of a tuned model.

    Attributes
    ----------
    embeddings : Tensor
        (documents, links, width), in the model's dtype, on its device.
    first : int
        Id of the first one: as many as the model has embeddings of text. The others follow, document by document.
    """

    embeddings: Tensor
    first: int

    @cached_property
    def digest(self) -> str:
        """Of the embeddings."""
        return hashlib.sha256(save({_NAME: self.embeddings.cpu()})).hexdigest()

    def ids(self, place: int) -> tuple[int, ...]:
        """Ids of the link tokens behind the prompt's chunk at `place`, from 0.

        Raises
        ------
        InvalidArgument
            If the model was tuned with fewer chunks than that.
        """
        documents, links, _ = self.embeddings.shape
        if place >= documents:
            raise InvalidArgument(
                f"the prompt has more than {documents} chunks, and the model was tuned with link tokens for that many; "
                f"ask with --top-k {documents} or fewer, or tune it with more by `{finetune('kvlink')}`"
            )
        start = self.first + place * links
        return tuple(range(start, start + links))

    def embed(self, table: Any, ids: Tensor) -> Tensor:
        """Embeddings of text and link tokens, (1, rows, width), by the model's own `table` and this one.

        The ids, (1, rows), are on the CPU.
        """
        device, linked = self.embeddings.device, ids[0] >= self.first  # (rows,)
        embedded: Tensor = table(upload(ids.masked_fill(linked, 0), device))
        rows = upload(linked.nonzero().squeeze(1), device)  # (link tokens,)
        embedded[0, rows] = self.embeddings.flatten(0, 1)[upload(ids[0, linked] - self.first, device)]
        return embedded


def load_links(folder: str | Path, tuning: Tuning, model: Any) -> LinkTokens | None:
    """The link tokens in an adapter's folder; None where it was tuned without.

    Raises
    ------
    UnusableAdapter
        If the file is missing or damaged, or is not what the record says, or of another model.
    """
    if not tuning.links:
        return None
    try:
        found = load_file(Path(folder) / LINKS)[_NAME]
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: its {LINKS} is missing or damaged ({_first_line(error)}); copy "
            "it anew from where it came from, or train it again"
        ) from error
    if getattr(model.config.get_text_config(), "hidden_size_per_layer_input", 0):
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: it has link tokens, and the model's layers have embeddings of "
            "their own, which link tokens lack; tune it by another recipe"
        )
    table = model.get_input_embeddings()
    rows, width = table.weight.shape
    wanted = (tuning.documents, tuning.links, width)
    if tuple(found.shape) != wanted:
        raise UnusableAdapter(
            f"cannot load the adapter {str(folder)!r}: its {LINKS} has the shape {tuple(found.shape)}, and its record "
            f"and the model take {wanted}; it was trained on {tuning.base}, so name that with --model"
        )
    return LinkTokens(found.to(table.weight.device, table.weight.dtype), rows)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
