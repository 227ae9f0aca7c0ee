"""What a client is given of an answer's text: a reply in a turn of its own, or a prompt's continuation as it is."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ragcache.engine.stream import Stream, strip_leading_space


class TextForm(Protocol):
    """An answer's pieces as they are given, none of them empty."""

    def __iter__(self) -> Iterator[str]: ...

    def join(self, pieces: Sequence[str]) -> str:
        """The text of all the pieces."""

    @property
    def shift(self) -> int:
        """How many characters the text has in front, more than its tokens decode to; once its first piece was given."""


#: Makes a form of an answer and its tokenizer.
FormOf = Callable[[Stream, Any], TextForm]


class ReplyText:
    """What is said in a turn: the white space around it belongs to nobody's words.

    Parameters
    ----------
    stream : Stream
        The answer.
    tokenizer : PreTrainedTokenizerBase
        Decodes it.
    """

    def __init__(self, stream: Stream, tokenizer: Any) -> None:
        self._stream = stream
        self._tokenizer = tokenizer

    def __iter__(self) -> Iterator[str]:
        return strip_leading_space(self._stream)

    def join(self, pieces: Sequence[str]) -> str:
        """Without the white space at its end."""
        return "".join(pieces).rstrip()

    @property
    def shift(self) -> int:
        """Below 0 where white space in front was left out."""
        text = self._tokenizer.decode(list(self._stream.token_ids), skip_special_tokens=True)
        return len(text.lstrip()) - len(text)


class ContinuedText:
    """What a prompt goes on with: behind it stands every character, white space too.

    Decoders of SentencePiece drop a blank that a text begins with. A continuation is no beginning, so it is decoded
    behind the prompt's last token first, to see what that would drop.

    Parameters
    ----------
    stream, tokenizer
        As `ReplyText` takes them.
    """

    def __init__(self, stream: Stream, tokenizer: Any) -> None:
        self._stream = stream
        self._tokenizer = tokenizer
        self._front = ""

    def __iter__(self) -> Iterator[str]:
        first = next(iter(self._stream), "")
        self._front = self._find_front(self._stream.prompt.text_ids[-1:], self._stream.token_ids)
        if begun := self._front + first:
            yield begun
        yield from self._stream

    def join(self, pieces: Sequence[str]) -> str:
        """As they are."""
        return "".join(pieces)

    @property
    def shift(self) -> int:
        """Above 0 where the tokens alone would have lost white space in front."""
        return len(self._front)

    def _find_front(self, before: Sequence[int], token_ids: Sequence[int]) -> str:
        last, alone, both = (self._decode(ids) for ids in (before, token_ids, [*before, *token_ids]))
        front = both[len(last) : len(both) - len(alone)]
        return front if front.isspace() and both == last + front + alone else ""

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))
