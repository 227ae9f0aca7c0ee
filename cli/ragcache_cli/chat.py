"""`ragcache chat`: one question after the other, each in the light of those before it."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ragcache_cli.ask import print_pieces
from ragcache_cli.opening import chosen_method, open_index
from ragcache_cli.options import (
    DEFAULT_INDEX,
    Adapter,
    AsJson,
    Auxiliary,
    Device,
    Dtype,
    Embedder,
    IndexPath,
    MaxNewTokens,
    Model,
    OwnMethod,
    Recompute,
    Rerank,
    Retrieve,
    TopK,
)
from ragcache_cli.terminal import note, say

if TYPE_CHECKING:
    from ragcache.engine.chat import Message
    from ragcache.engine.stream import Stream
    from ragcache.rag import RagCache


def chat(
    index: IndexPath = DEFAULT_INDEX,
    top_k: TopK = None,
    retrieve: Retrieve = None,
    rerank: Rerank = None,
    method: OwnMethod = None,
    auxiliary: Auxiliary = None,
    recompute: Recompute = None,
    max_new_tokens: MaxNewTokens = None,
    model: Model = None,
    adapter: Adapter = None,
    embedder: Embedder = None,
    dtype: Dtype = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Answer one question a line, until an empty one or the end of the input.

    Each question is retrieved for with the one before it, and asked behind everything said so far; the chunks come from
    the cache as ever. When the conversation no longer fits the model its oldest turns are left out. Nothing of it is
    kept once it ends.
    """
    from ragcache.errors import PromptTooLong
    from ragcache.index.opening import check_question
    from ragcache.model.decode import Sampling

    row = chosen_method(index, method, auxiliary)
    check_question(index, None, top_k=top_k, method=row, recompute=recompute)
    sampling = None if max_new_tokens is None else Sampling(max_new_tokens=max_new_tokens)
    with (
        _ended(),
        open_index(
            index,
            asked=row,
            model=model,
            adapter=adapter,
            embedder=embedder,
            dtype=dtype,
            device=device,
            retriever=retrieve,
            reranker=rerank,
        ) as rag,
    ):
        from ragcache.engine.chat import Message

        history: list[Message] = []
        for question in _lines():
            try:
                stream, history = _begun(
                    rag, question, history, top_k=top_k, method=row, recompute=recompute, sampling=sampling
                )
            except PromptTooLong as error:  # this one, with nothing in front of it; the next may fit
                note(str(error))
                continue
            if not as_json:
                print_pieces(stream)
            answer = stream.answer
            if as_json:
                say(json.dumps(answer.as_dict()))  # one line a turn
            else:
                for line in (answer.report.line(), *answer.report.notes):
                    note(line)
            history += [Message("user", question), Message("assistant", answer.text)]


@contextmanager
def _ended() -> Iterator[None]:
    """Ctrl-C is how one leaves, and nothing resumes."""
    try:
        yield
    except KeyboardInterrupt as error:
        note("\nragcache: the conversation is over; it is not kept")
        raise typer.Exit(130) from error


def _begun(rag: "RagCache", question: str, history: "list[Message]", **how: object) -> "tuple[Stream, list[Message]]":
    """The next answer, behind as many of the last turns as the model takes, and those turns."""
    from ragcache.errors import PromptTooLong

    while True:
        try:
            return rag.stream(question, history=history, **how), history  # type: ignore[arg-type]
        except PromptTooLong:
            if not history:
                raise
            history = history[2:]


def _lines() -> Iterator[str]:
    """What is typed, or what comes through a pipe; neither blank."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a byte that is not UTF-8 must not end the conversation
    while True:
        if sys.stdin.isatty():
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield line
