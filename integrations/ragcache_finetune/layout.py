"""A context as token ids: ragcache's own prompt, its questions as branches which see the chunks but not each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ragcache.layout.overlapped import overlapped
from ragcache.prompt import Prompt, Template
from ragcache_finetune.contexts import Asked, Context
from ragcache_finetune.recipes import Recipe

PLACEHOLDER = 0
"""Token id of a link token, whose embedding is exchanged."""


@dataclass
class Sample:
    """One context, token by token; the lists are equally long.

    Attributes
    ----------
    ids : list of int
        Token ids.
    chunk : list of int
        Number of the chunk, from 1; 0 for everything that is no chunk.
    branch : list of int
        Number of the question whose words or answer it is, from 1; 0 in front of the questions.
    positions : list of int
        RoPE positions.
    answer : list of bool
        Whether it is to be predicted: the answers' tokens, and their ends.
    link : list of int
        Row of the table of link embeddings; -1 for ordinary tokens.
    independent : bool
        Whether chunks are read apart.
    """

    independent: bool
    ids: list[int] = field(default_factory=list)
    chunk: list[int] = field(default_factory=list)
    branch: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    answer: list[bool] = field(default_factory=list)
    link: list[int] = field(default_factory=list)

    def extend(
        self,
        ids: Sequence[int],
        position: int,
        *,
        chunk: int = 0,
        branch: int = 0,
        answer: bool = False,
        link: int | None = None,
    ) -> None:
        """Append a run of tokens, the first at a position; `link` is the row of the first if they are link tokens."""
        count = len(ids)
        self.ids += ids
        self.chunk += [chunk] * count
        self.branch += [branch] * count
        self.positions += range(position, position + count)
        self.answer += [answer] * count
        self.link += [-1] * count if link is None else range(link, link + count)


class SampleLayout:
    """Lays out contexts the way ragcache asks.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's.
    recipe : Recipe
        Positions and link tokens.
    space : str
        What the model says in front of an answer's first word: nothing, or a space.
    """

    def __init__(self, tokenizer: "object", recipe: Recipe, space: str = "") -> None:
        self.template, self.recipe, self.space = Template(tokenizer), recipe, space
        self.end: int = tokenizer.eos_token_id  # type: ignore[attr-defined]

    def sample(self, context: Context, *, independent: bool) -> Sample:
        """A context with its questions and answers.

        Parameters
        ----------
        context : Context
            What is read.
        independent : bool
            Whether chunks are read apart.
        """
        prompts = [self._prompt(context, asked) for asked in context.asked]
        sample = Sample(independent)
        behind = self._read(sample, prompts[0])
        for number, (prompt, asked) in enumerate(zip(prompts, context.asked, strict=True), 1):
            words = prompt.token_ids[prompt.slots[prompt.question] :]
            sample.extend(words, behind, branch=number)
            said = (*self.template.plain(self.space + asked.answers[0].strip()), self.end)
            sample.extend(said, behind + len(words), branch=number, answer=True)
        return sample

    def _prompt(self, context: Context, asked: Asked) -> Prompt:
        chunks = [self.template.chunk(text, str(number)) for number, text in enumerate(context.chunks)]
        prompt = self.template.prompt(chunks, asked.question)
        return overlapped(prompt) if self.recipe.positions == "composite" else prompt

    def _read(self, sample: Sample, prompt: Prompt) -> int:
        """Append what stands in front of the question; returns the question's position."""
        links, documents = self.recipe.links, 0
        for segment, start in zip(prompt.segments[: prompt.question], prompt.starts, strict=False):
            if segment.chunk is None:
                sample.extend(segment.token_ids, start + links * documents)
                continue
            sample.extend(segment.token_ids, start + links * documents, chunk=documents + 1)
            sample.extend([PLACEHOLDER] * links, sample.positions[-1] + 1, link=links * documents)
            documents += 1
        return prompt.starts[prompt.question] + links * documents
