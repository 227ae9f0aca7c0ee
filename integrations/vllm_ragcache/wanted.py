"""What a request asks of ragcache, and what vLLM cannot do of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragcache.encode import Encoder, PromptEncoder
from ragcache.errors import InvalidArgument
from ragcache.layout import Retrieved
from ragcache.method import Method
from ragcache.methods import find_method
from ragcache.model.tuning import Tuning
from ragcache.schedule import Flat
from ragcache.select import FirstTokens, KeyDeviation, QuestionAttention, RandomTokens

if TYPE_CHECKING:
    from vllm_ragcache.served_index import Composition

FIELD = "ragcache"  # of a request's kv_transfer_params, and of those that come back
WORKER = "vllm_ragcache.worker.RagCacheWorker"  # without which vLLM cannot recompute
_FIELDS = ("method", "recompute")
_SELECTORS = (FirstTokens, KeyDeviation, QuestionAttention, RandomTokens)


@dataclass(frozen=True)
class Wanted:
    """How a request is to be answered.

    Attributes
    ----------
    method : str
        Row of the table.
    encoder : Encoder
        Whose KV is loaded.
    recompute : float
        Share of the chunks' tokens to recompute.
    """

    method: str
    encoder: Encoder
    recompute: float


def parse_wanted(
    params: Mapping[str, Any] | None, default: str, tuning: Tuning | None = None, unable: str = ""
) -> Wanted | None:
    """Read a request's `kv_transfer_params`.

    Parameters
    ----------
    params : mapping or None
        `{"ragcache": {"method": NAME, "recompute": SHARE}}`, either of them or both; the name alone in place of the
        inner mapping; False for full prefill.
    default : str
        Name of the method where none is asked for.
    tuning : Tuning or None
        How the served model was tuned to read chunks, if it was.
    unable : str
        Why this server cannot recompute tokens, if it cannot: the default method then only loads.

    Returns
    -------
    Wanted or None
        None for full prefill.

    Raises
    ------
    InvalidArgument
        If there is no such method, or vLLM cannot run it; the message says why.
    """
    asked = (params or {}).get(FIELD, {})
    if asked is False or asked is None:
        return None
    if isinstance(asked, str):
        asked = {"method": asked}
    if not isinstance(asked, Mapping) or not set(asked) <= set(_FIELDS):
        raise InvalidArgument(
            f"kv_transfer_params has {FIELD}={asked!r}; give a method's name, an object with {' and '.join(_FIELDS)}, "
            "or false for full prefill"
        )
    name = asked.get("method", default)
    row = find_method(name)
    if row.encode is None:
        return None
    check_method(row, tuning)
    share = asked.get("recompute")
    if share is None and name == default and row.recompute and unable:
        share = 0.0
    if share is not None and not isinstance(share, int | float):
        raise InvalidArgument(f"recompute is {share!r}; it is a share between 0 and 1")
    budget = row.budget(share)
    if budget > 0 and unable:
        raise InvalidArgument(
            f"method {row.name!r} is to recompute {budget:.0%} of the tokens, and this server only loads: {unable}; "
            f'ask with {{"{FIELD}": {{"method": "{row.name}", "recompute": 0}}}}'
        )
    if budget > 0:
        check_selector(row)
    return Wanted(row.name, row.encode, budget)


def check_method(row: Method, tuning: Tuning | None) -> None:
    """Refuse a row that changes more than which KV is loaded.

    Raises
    ------
    InvalidArgument
        The message names the axis.
    """
    row.check_tuning(tuning, "the served model")
    if isinstance(row.encode, PromptEncoder) or (row.encode is not None and row.encode.exact_only):
        why = "takes KV from earlier prompts, as vLLM's own prefix cache does: leave it to that"
    elif row.attend is not None:
        why = f"changes attention ({row.attend!r}), and vLLM's kernels are its own"
    elif row.layout != Retrieved():
        why = f"arranges chunks anew ({row.layout!r}), and a prompt that arrives is answered as it stands"
    elif row.schedule != Flat():
        why = f"recomputes layer by layer ({row.schedule!r}), and vLLM runs a token through all of them"
    else:
        return
    raise InvalidArgument(f"method {row.name!r} cannot run on vLLM: it {why}; take auto, naive or full")


def check_selector(row: Method) -> None:
    """Refuse a selector that needs more than a prompt's tokens and KV.

    Raises
    ------
    InvalidArgument
        The message names it.
    """
    if row.select is None or isinstance(row.select, _SELECTORS):
        return
    known = ", ".join(selector.__name__ for selector in _SELECTORS)
    raise InvalidArgument(
        f"method {row.name!r} cannot recompute on vLLM: it chooses by {row.select!r}, and a worker runs {known}; "
        f"ask with recompute 0, or `ragcache ask --method {row.name}`"
    )


def count_first_pass(row: Method, found: "Composition", question: int) -> int:
    """How many tokens a row's selector runs through the model at once, before any is chosen.

    Parameters
    ----------
    row : Method
        Says which selector.
    found : Composition
        What of the prompt comes from the store.
    question : int
        Tokens of the question's words.
    """
    if isinstance(row.select, KeyDeviation):
        return found.inexact
    return found.fresh + question if isinstance(row.select, QuestionAttention) else 0
