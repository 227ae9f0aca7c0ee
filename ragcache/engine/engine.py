"""Engine: answers questions over cached chunks, one path for all of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ragcache.engine.answer import Answer, compare_answers
from ragcache.engine.chat import Message
from ragcache.engine.prefill import Prefilled, choose_strategy
from ragcache.engine.request import AnyMethod, Request, RequestBuilder, RequestOptions
from ragcache.engine.stream import Stream
from ragcache.index.chunks import Chunk
from ragcache.index.index import Index
from ragcache.model.decode import Sampling
from ragcache.model.reader import Reader


class Engine:
    """Answers from cached chunks: request, plan, load, select, prefill, decode.

    Parameters
    ----------
    reader : Reader
        The model.
    index : Index
        Where the chunks' KV is.
    method : str or Method, optional
        The row that answers where none is named; the table's default otherwise.

    Attributes
    ----------
    requests : RequestBuilder
        Makes what `start` takes.
    """

    def __init__(self, reader: Reader, index: Index, method: AnyMethod | None = None) -> None:
        self.reader = reader
        self.index = index
        self.requests = RequestBuilder(index, method)
        self.method: Final = self.requests.method
        _ = reader.dims  # counted before anybody waits for it

    def answer(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        compare: bool = False,
    ) -> Answer:
        """Answer a question over chunks, in the order given.

        Parameters
        ----------
        question : str
            The user's words.
        chunks : sequence of Chunk or str
            From the index, or plain text that was never ingested.
        method : str or Method, optional
            A row of the table, or one's own; the engine's by default.
        recompute : float, optional
            Share of the reused tokens to recompute, in [0, 1]; the row's default otherwise.
        sampling : Sampling, optional
            Greedy by default.
        history : sequence of Message
            Earlier turns of the conversation, the system's own words among them if it has any; they are fresh text.
        compare : bool
            Measure the stock full prefill of the same ids too, after a warm-up of each.

        Raises
        ------
        InvalidArgument
            If the question is blank, or the method or share is not one.
        PromptTooLong
            If the prompt and the answer do not fit the model.
        MissingEncoding
            If the index holds KV, but none that the method loads.
        """
        options = RequestOptions(method, recompute, sampling)
        request = self.requests.from_question(question, chunks, options, history)
        return self.compare(request) if compare else self.start(request).answer

    def answers(
        self,
        pairs: Sequence[tuple[str, Sequence[Chunk | str]]],
        *,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
    ) -> list[Answer]:
        """Answer several questions at once, each over its chunks.

        Their forwards are joined, which reads every weight once for all of them; questions over the same chunks in the
        same order start from copies of one assembled context. Its missing KV is charged to the first of them, and so is
        what a method recomputes of it, where that does not depend on the question and is shared, too. Each
        gets the answer it gets alone, up to the rounding of products over more rows. A first token is only as early as
        the slowest question's. Every question has a buffer of its own until all are answered.

        Parameters
        ----------
        pairs : sequence of (str, sequence of Chunk or str)
            Each question with its chunks.
        method, recompute, sampling
            As in `answer`.

        Raises
        ------
        InvalidArgument, PromptTooLong, MissingEncoding
            As `answer`, for the first question that does, once all others are answered.
        """
        builders = self.requests.from_pairs(pairs, RequestOptions(method, recompute, sampling))
        return self.reader.run_batch([partial(self._answer, build) for build in builders])

    def stream(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
        history: Sequence[Message] = (),
        drafts: Sequence[Sequence[int]] = (),
    ) -> Stream:
        """The same, piece by piece: iterate for the text, then read `.answer`.

        Token ids of answers that may well come are `drafts`: one that does costs a single forward, not one per token.
        Only greedy decoding looks at them. They change nothing but the rounding of rows that are forwarded together.
        """
        options = RequestOptions(method, recompute, sampling, drafts)
        return self.start(self.requests.from_question(question, chunks, options, history))

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        sampling: Sampling | None = None,
    ) -> Stream:
        """Continue a prompt that somebody else wrote, with the index's KV for every chunk that is found in it.

        Parameters
        ----------
        prompt : str or sequence of Message
            A string is continued as it is; messages go through the model's chat template. Chunks are those that a
            message names, those in `<chunk>` blocks, and all known ones that stand anywhere; the rest is prefilled.
        method, recompute, sampling
            As in `answer`.

        Raises
        ------
        InvalidArgument
            If the prompt is blank, or the method or share is not one.
        PromptTooLong
            If the prompt and the answer do not fit the model.
        MissingEncoding
            If the index holds KV, but none that the method loads.
        UnsupportedModel
            If the model's chat template refuses the messages.
        """
        return self.start(self.requests.from_prompt(prompt, RequestOptions(method, recompute, sampling)))

    def chunk(self, text: str, name: str | None = None, *, called: str = "") -> Chunk:
        """The index's chunk of this text, white space around it apart; an uncached one where it has none.

        Where several documents have the text, the chunk is the one of that `name`, which may be its id or a vector
        store's name for it. `called` is what reports call the document of a text that the index does not have.
        """
        found = self.requests.parser.chunk(text, name)
        return found if found.source else replace(found, called=called)

    def start(self, request: Request) -> Stream:
        """Prefill a request's prompt; what comes back decodes as it is read.

        Raises
        ------
        PromptTooLong
            If the prompt and the answer do not fit the model.
        """
        prefilled = choose_strategy(request.method).prefill(request, self.index)
        return Stream(self.reader, request, prefilled)

    def compare(self, request: Request) -> Answer:
        """Answer a request, with stock full prefill of the same ids beside it, each after a warm-up."""
        stream = self.start(request)
        answer, in_full = stream.answer, request.repeated_in_full(stream.prompt)
        del stream  # and its KV
        self.start(in_full)  # a warm-up, as the answer was one
        again, full = self.start(request.repeated()).report, self.start(in_full.repeated()).answer
        return replace(answer, comparison=compare_answers(answer, again, full))

    def prefill(
        self,
        question: str,
        chunks: Sequence[Chunk | str],
        *,
        method: AnyMethod | None = None,
        recompute: float | None = None,
        max_new_tokens: int = 1,
    ) -> Prefilled:
        """Everything up to the first token's logits, for whoever looks inside.

        The method is the engine's own where none is named, whatever break-even says, and KV that the index lacks
        altogether is made, for this once.
        """
        options = RequestOptions(method or self.method, recompute, Sampling(max_new_tokens=max_new_tokens), check=False)
        request = self.requests.from_question(question, chunks, options)
        return choose_strategy(request.method).prefill(request, self.index)

    def check_encoding(self, method: AnyMethod) -> None:
        """Refuse a method whose encoding the index lacks altogether.

        Raises
        ------
        MissingEncoding
            The message names the command that makes it.
        """
        self.requests.check_encoding(method)

    def _answer(self, build: Callable[[], Request]) -> Answer:
        return self.start(build()).answer
