"""From one tokenizer's tokens to another's, by the characters they stand for."""

from collections.abc import Sequence
from typing import Any

from ragcache.errors import UnsupportedModel
from ragcache.model.lazy import Tensor, torch

_UNFINISHED = "\ufffd"  # how a decoder shows bytes that are no character yet


def spans(tokenizer: Any, text: str, token_ids: Sequence[int]) -> Tensor:
    """Which characters each token stands for, (tokens, 2) int64: start and end, never empty.

    Together the spans cover the text: white space that a tokenizer leaves out of its offsets belongs to the token
    behind it, and a token that is part of a character has the whole character.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        Made the tokens.
    text : str
        What the tokens were made from; not empty.
    token_ids : sequence of int
        As `Template.plain` makes them, at least one.

    Raises
    ------
    UnsupportedModel
        If the tokenizer gives no character offsets.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise UnsupportedModel(
            f"{type(tokenizer).__name__} is not a fast tokenizer and gives no character offsets, so another model's "
            "tokens cannot be matched with its own; name an auxiliary with the primary's tokenizer, or use another "
            "--method"
        )
    found = tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
    )
    if tuple(found["input_ids"]) == tuple(token_ids):
        return _covering(torch.tensor(found["offset_mapping"]), len(text))
    # Text with markup in it was cut there before it was tokenised, so that tokenising the whole gives other tokens.
    return _covering(_decoded(tokenizer, token_ids), len(text))


def spread(mass: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """Mass on one tokenizer's tokens, handed to another's that share characters with them.

    Each token's mass is split by length of overlap; none is lost.

    Parameters
    ----------
    mass : Tensor
        (own tokens,) fp32.
    own, other : Tensor
        (own tokens, 2) and (other tokens, 2), from `spans` over the same text.

    Returns
    -------
    Tensor
        (other tokens,) fp32.
    """
    last_start = torch.maximum(own[:, None, 0], other[None, :, 0])  # (own tokens, other tokens)
    first_end = torch.minimum(own[:, None, 1], other[None, :, 1])
    shared = (first_end - last_start).clamp(min=0).to(mass.dtype)
    return mass @ (shared / shared.sum(1, keepdim=True))


def _decoded(tokenizer: Any, token_ids: Sequence[int]) -> Tensor:
    """Offsets by decoding ever longer beginnings, (tokens, 2).

    Off by what decoding adds to or drops from the text, which for most tokenizers is nothing.
    """
    ids = list(token_ids)
    texts = (tokenizer.decode(ids[:n], clean_up_tokenization_spaces=False) for n in range(len(ids) + 1))
    ends = torch.tensor([len(text.rstrip(_UNFINISHED)) for text in texts])  # (tokens + 1,)
    return torch.stack([ends[:-1], ends[1:]], dim=1)


def _covering(offsets: Tensor, length: int) -> Tensor:
    """Offsets within the text, stretched until nothing is left between them and none is empty, (tokens, 2)."""
    found, ends = offsets.clamp(max=length).unbind(1)
    ends[-1] = length
    for _ in range(2):  # a token that was widened leaves less between itself and the next
        reached = torch.cat([ends.new_zeros(1), ends.cummax(0).values[:-1]])  # (tokens,): where those before end
        starts = torch.minimum(found, reached).clamp(max=length - 1)
        ends = torch.maximum(ends, starts + 1)
    return torch.stack([starts, ends], dim=1)
