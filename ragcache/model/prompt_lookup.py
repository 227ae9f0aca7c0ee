"""Prompt lookup: answers from documents quote them, so what once followed the last tokens may well follow again.

Prompt lookup decoding (Saxena, 2023), as `prompt_lookup_num_tokens` of transformers: an n-gram that stood before, in
the prompt or in the answer, drafts its former continuation, and one forward verifies all of it. Two things are unlike
there. A quotation goes on where it was, before anything is looked up anew. And a draft is not for nothing, so nothing
shorter than three tokens is looked up, and drafts in vain are followed by pauses, each twice as long.
"""

from collections.abc import Sequence

NGRAM = 3
"""Tokens that must have stood before: two stand again in text that quotes nothing, more miss how quotations begin."""


class PromptLookup:
    """Drafts of an answer's next tokens.

    Parameters
    ----------
    tokens : sequence of int
        Of the prompt.
    num_tokens : int
        Most tokens of a draft; 0 drafts nothing.
    """

    def __init__(self, tokens: Sequence[int], num_tokens: int) -> None:
        self._most = num_tokens
        self._tokens: list[int] = []
        self._behind: dict[tuple[int, ...], int] = {}  # where the text goes on behind an n-gram's first place
        self._quoted: int | None = None  # where it goes on behind what is being quoted
        self._pause = self._resume = 0
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Take note of one more token of the text."""
        if len(self._tokens) >= NGRAM:
            self._behind.setdefault(tuple(self._tokens[-NGRAM:]), len(self._tokens))
        if self._quoted is not None:
            self._quoted = self._quoted + 1 if self._tokens[self._quoted] == token else None
        self._tokens.append(token)

    def draft(self, most: int) -> list[int]:
        """What may come next, `most` tokens or fewer; nothing where nothing like it stood before, or in a pause."""
        if self._quoted is None:
            self._quoted = self._behind.get(tuple(self._tokens[-NGRAM:]))
        if self._quoted is None or len(self._tokens) < self._resume:
            return []
        return self._tokens[self._quoted : self._quoted + min(most, self._most)]

    def note_kept(self, kept: int) -> None:
        """Learn how many tokens of the last draft held."""
        self._pause = 0 if kept else max(1, 2 * self._pause)
        self._resume = len(self._tokens) + 1 + self._pause
