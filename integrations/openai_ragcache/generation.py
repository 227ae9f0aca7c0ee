"""A request for text, done by the engine: pieces of the answer as they come, then all that there is to say of it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from openai_ragcache.agreement import describe_verification, is_approximate
from openai_ragcache.api_errors import ApiError, hide_folders
from openai_ragcache.bodies import Generating
from openai_ragcache.engine_queue import Job
from openai_ragcache.logprobs import Logprobs, TokenLogprob
from openai_ragcache.names import file_name
from openai_ragcache.server import Server
from openai_ragcache.tenants import Tenant
from openai_ragcache.text_form import FormOf, ReplyText, TextForm
from ragcache import RagCache
from ragcache.engine.answer import Answer, Source
from ragcache.engine.clock import Clock
from ragcache.engine.request import Request, RequestOptions
from ragcache.engine.stream import Stream
from ragcache.engine.verify import Given, verify_by_full_prefill
from ragcache.report import CacheReport


@dataclass(frozen=True)
class Piece:
    """A part of an answer; with what its tokens were likely to be, where that is wanted."""

    text: str
    logprobs: list[TokenLogprob] | None = None


@dataclass(frozen=True)
class Generated:
    """A finished answer.

    Attributes
    ----------
    text : str
        What was said.
    finish_reason : str
        "stop", or "length" where the most tokens were written.
    prompt_tokens, completion_tokens : int
        Of the prompt, chunks and all, and of the answer.
    sources : tuple of Source
        The chunks of the prompt.
    about : dict
        The response's `ragcache` object: method, states and reasons, what was charged, milliseconds.
    logprobs : list or None
        Of each token, where they are wanted.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    sources: tuple[Source, ...]
    about: dict[str, Any]
    logprobs: list[TokenLogprob] | None = None

    @property
    def usage(self) -> dict[str, int]:
        """OpenAI's count of tokens. Reuse is not in it: a client would take it for an exact prefix cache's."""
        return sum_usage([self])


@dataclass(frozen=True)
class Generation:
    """An answer to be generated.

    Attributes
    ----------
    server : Server
        Its limits, and where the answer is counted.
    tenant : Tenant
        Whose index it is over.
    body : Generating
        How tokens are chosen, and by which method.
    build : callable
        Makes the engine's request.
    form : callable
        What of the answer's text is given.
    """

    server: Server
    tenant: Tenant
    body: Generating
    build: Callable[[RequestOptions], Request]
    form: FormOf = ReplyText

    @property
    def rag(self) -> RagCache:
        """The tenant's index."""
        return self.tenant.rag

    def run(self, job: Job[Any], clock: Clock | None = None) -> Iterator[Piece | Generated]:
        """Give the pieces, then the finished answer; breaks off wherever nobody waits any more, in a forward too.

        The clock may have been begun in front of retrieval.
        """
        clock = clock or Clock(self.rag.reader.device)
        clock.check = job.check
        choice = self.body.ragcache
        options = RequestOptions(choice.method, choice.recompute, self.body.sampling, clock=clock)
        request = answered = self._fit(self.build(options))
        if choice.is_default:
            answered = self.server.verifier.choose(self.tenant, request)
        with self.rag.reader.checked(job.check):
            stream = self.rag.engine.start(answered)
            form, said = self.form(stream, self.rag.reader.tokenizer), list[Piece]()
            for piece in self._pieces(stream, form):
                said.append(piece)
                yield piece
            if choice.is_default and not choice.verify:
                self.server.verifier.offer(self.tenant, request, answered, stream)
            self.server.learner(self.tenant).notice(request)
            yield self._finish(answered, stream, job, self._joined(said, form))

    def _pieces(self, stream: Stream, form: TextForm) -> Iterator[Piece]:
        others = self.body.wanted_logprobs
        if others is None:
            yield from map(Piece, form)
            return
        logprobs = Logprobs(self.rag.reader.tokenizer, others)
        stream.watch_logits(logprobs.watch)
        for text in form:
            yield Piece(text, [] if stream.refused else logprobs.take(stream.token_ids, form.shift))

    def _joined(self, pieces: Sequence[Piece], form: TextForm) -> Piece:
        text = form.join([piece.text for piece in pieces])
        wanted = self.body.wanted_logprobs is not None
        return Piece(text, [one for piece in pieces for one in piece.logprobs or ()] if wanted else None)

    def _fit(self, request: Request) -> Request:
        """The request within the limits; where it names no most tokens, so many as are left."""
        length = len(request.frame.prompt([chunk.segment for chunk in request.chunks], request.question))
        most = self.server.settings.max_prompt_tokens
        if most is not None and length > most:
            raise ApiError(
                f"the prompt has {length:,} tokens; this server takes {most:,}", code="context_length_exceeded"
            )
        if self.body.limit is not None:
            return request
        left = max(1, min(self.server.settings.max_tokens, self.rag.reader.limit - length))
        return replace(request, sampling=replace(request.sampling, max_new_tokens=left))

    def _finish(self, request: Request, stream: Stream, job: Job[Any], said: Piece) -> Generated:
        answer = stream.answer
        written, tokens = len(answer.token_ids), answer.report.tokens
        self.server.metrics.note_answer(answer.report, written, job.waited_ms)
        if request.method.encode is not None or self.body.ragcache.is_default:  # or somebody compares
            self.server.history(self.tenant).add(answer.report)
        return Generated(
            text=said.text,
            finish_reason=stream.finish_reason,
            prompt_tokens=tokens.context + tokens.question,
            completion_tokens=written,
            sources=answer.sources,
            about=describe(answer.report, job.waited_ms)
            | self._texts(stream, answer)
            | self._verified(request, stream),
            logprobs=said.logprobs,
        )

    def _verified(self, request: Request, stream: Stream) -> dict[str, Any]:
        """Whether full prefill says the same, where the request asks for it; what it says, where it does not."""
        if not self.body.ragcache.verify or stream.refused:
            return {}
        clock = request.clock.restarted()
        began = clock.now()
        found = verify_by_full_prefill(Given.of(request, stream), self.rag.index)
        if self.body.ragcache.is_default and request.method.encode is not None and is_approximate(stream):
            self.server.verifier.count(self.tenant, request.question, stream.answer.text, found)
        full = None if found.confirmed else self._say(self.rag.engine.start(request.repeated_in_full(stream.prompt)))
        about = {**describe_verification(found), "answer": full, "ms": clock.now() - began}
        return {"verification": about}

    def _say(self, stream: Stream) -> str:
        """A whole answer's text, in the form of this one's."""
        form = self.form(stream, self.rag.reader.tokenizer)
        return form.join(list(form))

    def _texts(self, stream: Stream, answer: Answer) -> dict[str, Any]:
        """The chunks' places and texts, in the prompt's order, where the request asks for them."""
        if not self.body.ragcache.texts:
            return {}
        sources = {source.id: source for source in answer.sources}
        runs = token_runs(stream, self.rag.reader.tokenizer)
        shown = [(sources[id], parts) for id, parts in runs if id in sources]
        return {"texts": [_as_text(source, parts) for source, parts in shown]}


def token_runs(stream: Stream, tokenizer: Any) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Each chunk of a prompt by its id, as runs of text: whether their tokens were reused, and computed again."""
    prompt, recomputed, found = stream.prompt, stream.recomputed.tolist(), []
    for place in prompt.chunks():
        segment, again = prompt.segments[place], recomputed[prompt.span(place)]
        parts = groupby(zip(segment.token_ids, again, strict=True), key=itemgetter(1))
        texts = [(tokenizer.decode([token for token, _ in part]), state) for state, part in parts]
        found.append((segment.chunk or "", texts))
    return found


def _as_text(source: Source, parts: list[tuple[str, bool]]) -> dict[str, Any]:
    runs = [{"text": text, "recomputed": state} for text, state in parts]
    place = {"source": file_name(source.source), "page": source.page, "heading": source.heading, "score": source.score}
    return {"id": source.id, **place, "runs": runs}


def sum_usage(answers: Sequence[Generated]) -> dict[str, int]:
    """The tokens of some answers together."""
    asked, said = (sum(one.prompt_tokens for one in answers), sum(one.completion_tokens for one in answers))
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def describe(report: CacheReport, waited_ms: float) -> dict[str, Any]:
    """A report for clients: every chunk's state with its reason, and nothing of the server's folders."""
    states = Counter(chunk.cache for chunk in report.chunks)
    whole = report.as_dict()
    return {
        "method": report.method,
        "recompute": report.recompute,
        "hit": states["hit"],
        "exact": states["exact"],
        "miss": states["miss"],
        "chunks": [{**asdict(chunk), "source": file_name(chunk.source)} for chunk in report.chunks],
        "tokens": whole["tokens"],
        "charged": report.charged,
        "charged_flops": report.charged_flops,
        "ms": {**whole["ms"], "queue": waited_ms},
        "notes": [hide_folders(note) for note in report.notes],
    }
