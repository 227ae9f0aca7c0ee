"""Link tokens behind every chunk."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragcache.layout.protocol import Layout, Look
from ragcache.prompt import Frame, Prompt, Segment


@dataclass(frozen=True)
class Linked(Layout):
    """KVLink's link tokens (2502.16002): a few behind each chunk, which see all that stands in front of them.

    They are no text but embeddings, trained together with the model, other ones behind the first chunk than behind the
    second; there are as many as the model was tuned with (paper: 0, 1 or 5). They take slots and positions of their
    own. Nothing of them is stored: they are computed for every answer, and charged. A chunk's stored KV was made alone
    and sees none of them, so what they gather of the chunks in front reaches the question, and no other chunk.

    The paper says that link tokens stand before each context, its code appends them behind each, and so does this.
    """

    def place(self, frame: Frame, prefix: Segment, chunks: Sequence[Segment], question: str, look: Look) -> Prompt:
        """Prefix, each chunk as given with its link tokens, question."""
        return linked(frame.prompt(chunks, question, prefix=prefix), look)


def linked(prompt: Prompt, look: Look) -> Prompt:
    """The same prompt with link tokens behind its chunks, if the model has any."""
    segments: list[Segment] = []
    question, places = prompt.question, 0
    for number, segment in enumerate(prompt.segments):
        segments.append(segment)
        if segment.chunk is not None and (link := look.link_tokens(places)):
            segments.append(link)
            places += 1
            question += number < prompt.question
    return replace(prompt, segments=tuple(segments), question=question)
