"""What a benchmark asks of something else that answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
from torch import Tensor

#: A prompt's token ids in parts: system prefix, each chunk, question.
Parts = Sequence[Sequence[int]]


class Peer(Protocol):
    """Answers prompts, from nothing or from what it keeps of earlier ones."""

    @property
    def name(self) -> str:
        """What a table calls it."""

    @property
    def remembers(self) -> bool:
        """Whether an earlier prompt makes a later one cheaper."""

    @property
    def held(self) -> int:
        """Bytes of what it keeps for later prompts."""

    def reset(self) -> None:
        """Forget all prompts."""

    def ready(self, parts: Parts) -> None:
        """Make what exists before a question comes, such as chunks' KV; not timed."""

    def first_token(self, parts: Parts) -> Tensor:
        """The first token's logits, (vocabulary,); timed, from ids to logits."""

    def settle(self) -> None:
        """Keep for later what is kept once the first token is out; not timed."""


#: Peers that may hold so many bytes, or what they like.
MakePeers = Callable[[int | None], Sequence[Peer]]


@dataclass(frozen=True)
class Reordered(ABC):
    """A peer whose chunks come in another order than that of the prompt.

    Attributes
    ----------
    peer : Peer
        Who answers.
    """

    peer: Peer
    called: ClassVar[str]

    @abstractmethod
    def order(self, chunks: Parts) -> Parts:
        """The chunks, each as its token ids, in the order that the peer is to have them in."""

    @property
    def name(self) -> str:
        """The peer's, and its order."""
        return f"{self.peer.name}, {self.called}"

    @property
    def remembers(self) -> bool:
        """As the peer's."""
        return self.peer.remembers

    @property
    def held(self) -> int:
        """As the peer's."""
        return self.peer.held

    def reset(self) -> None:
        """As the peer's."""
        self.peer.reset()

    def ready(self, parts: Parts) -> None:
        """As the peer's, which makes what exists whatever the order."""
        self.peer.ready(parts)

    def first_token(self, parts: Parts) -> Tensor:
        """As the peer's; the time that ordering takes is inside."""
        prefix, *chunks, question = parts
        return self.peer.first_token([prefix, *self.order(chunks), question])

    def settle(self) -> None:
        """As the peer's."""
        self.peer.settle()


class SameOrder(Reordered):
    """A peer whose chunks always come in the same order: a prefix cache's best case."""

    called = "same order"

    def order(self, chunks: Parts) -> Parts:
        """Sorted by their tokens."""
        return sorted(chunks, key=tuple)

    def ready(self, parts: Parts) -> None:
        """As the peer's: what it keeps is a prompt in this order."""
        prefix, *chunks, question = parts
        self.peer.ready([prefix, *self.order(chunks), question])


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two prompts begin with alike."""
    shorter = min(len(one), len(other))
    differs = np.asarray(one[:shorter]) != np.asarray(other[:shorter])
    return int(differs.argmax()) if differs.any() else shorter


def distinct_tokens(prompts: Iterable[Sequence[int]]) -> int:
    """Tokens of prompts where what some begin alike with counts once, as in a tree of their beginnings."""
    known = sorted(map(list, prompts))
    return sum(map(len, known)) - sum(common_prefix(one, other) for one, other in pairwise(known))


def joined(parts: Parts) -> list[int]:
    """A prompt's token ids."""
    return [token for part in parts for token in part]
