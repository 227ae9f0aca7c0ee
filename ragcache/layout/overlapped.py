"""Every chunk at the same positions, as if each stood alone in front of the question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragcache.layout.protocol import Layout, Look
from ragcache.prompt import Frame, Prompt, Segment


@dataclass(frozen=True)
class Overlapped(Layout):
    """APE's shared position range (2502.05431): chunks begin at |prefix|, the question behind the longest of them.

    TurboRAG's composite positions (2410.07590) are the same: every cache keeps the positions of a chunk that is read
    alone, so all begin at one place. The reading taken of it: that place is where the first chunk begins, behind the
    system prefix, and what follows the chunks begins behind the longest, not behind the sum of all.

    Chunks encoded behind the system prefix then stand where they were made and are not rotated, and a long context
    takes few positions, of no more tokens than the model takes all the same. Which chunk came first can no longer be
    told: not for notes whose order matters.
    """

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Chunks in the order given; slots, and with them causality, as ever."""
        return overlapped(frame.prompt(chunks, question, prefix=prefix))


def overlapped(prompt: Prompt) -> Prompt:
    """The same prompt with all chunks at the positions of the first."""
    chunks = set(prompt.chunks())
    positions, here, behind = [], 0, 0
    for number, segment in enumerate(prompt.segments):
        positions.append(here)
        if number in chunks:
            behind = max(behind, here + len(segment))
            here = here if number + 1 in chunks else behind
        else:
            here += len(segment)
    return replace(prompt, positions=tuple(positions))
