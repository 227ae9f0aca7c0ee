"""A context as token ids: the passages once, its questions as branches that see them but not each other."""

import random
from dataclasses import dataclass
from typing import Any

from reader_training.batches import BRANCH, Row

from ragcache.prompt import CHUNK_END, Prompt, Segment, Template
from reader_tuning.contexts import Context, shortest

_FOREIGN = 0.25
"""Share of the contexts asked about in other words than ours."""
_PIECES = "Use the following pieces of context to answer the question at the end.\n\n"
_LINE = "---------------------\n"
_CHUNKS, _QUESTION = "\u2042chunks\u2042", "\u2042question\u2042"
_FOREIGN_PROMPTS = (
    (None, f"{_PIECES}{_CHUNKS}Question: {_QUESTION}\nHelpful Answer:"),
    (None, f"Context information is below.\n{_LINE}{_CHUNKS}{_LINE}Given the context information and not prior "
           f"knowledge, answer the query.\nQuery: {_QUESTION}\nAnswer: "),
    ("Answer with a few words from the text.", f"{_CHUNKS}{_QUESTION}"),
    ("You are a helpful assistant.", f"Answer from the context.\n\nContext:\n{_CHUNKS}Question: {_QUESTION}"),
)  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """Text around passages and question, as token ids come of it: before the passages, and around the question."""

    before: Segment
    ask: str
    after: Segment


class Layout:
    """Lays out contexts in the prompts of a model.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        The model's, with a chat template.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.template = tokenizer, Template(tokenizer)
        self.end: int = tokenizer.eos_token_id
        suffix = self.template.question("?")[1]
        self._ours = Frame(self.template.prefix, self.template.question(_QUESTION)[0].text, suffix)
        self._foreign = [self._frame(system, user) for system, user in _FOREIGN_PROMPTS]

    def row(self, rng: random.Random, context: Context) -> Row:
        """A context with all its questions and answers, of which the answers are to be predicted."""
        frame = rng.choice(self._foreign) if rng.random() < _FOREIGN else self._ours
        row = Row([], [], [], [], [], "full")
        row.extend(frame.before.token_ids, 0, 0)
        for number, text in enumerate(context.passages, 1):
            row.extend(self.template.plain(text + CHUNK_END), number, len(row.ids))
        start = len(row.ids)
        for number, (question, answers) in enumerate(context.asked):
            asked = (*self.template.plain(frame.ask.replace(_QUESTION, question)), *frame.after.token_ids)
            answer = (*self.template.plain(shortest(answers)), self.end)
            row.extend(asked, BRANCH + number, start)
            row.extend(answer, BRANCH + number, start + len(asked), label=True)
        return row

    def prompt(self, context: Context, question: str) -> Prompt:
        """The prompt that `ragcache` asks a question with."""
        chunks = [self.template.chunk(text, str(number)) for number, text in enumerate(context.passages)]
        return self.template.prompt(chunks, question)

    def _frame(self, system: str | None, user: str) -> Frame:
        messages = [{"role": "system", "content": system}] if system else []
        text = self.template.conversation([*messages, {"role": "user", "content": user}])
        before, _, rest = text.partition(_CHUNKS)
        ask, _, after = rest.partition(_QUESTION)
        return Frame(self.template.markup(before), ask + _QUESTION, self.template.markup(after))
