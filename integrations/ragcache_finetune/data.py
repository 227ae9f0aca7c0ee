"""Where contexts come from: a file of rows, an index and questions, or invented documents."""

import random
from collections.abc import Callable
from pathlib import Path

from ragcache_bench.datasets.item import holds
from ragcache_bench.questions.families import draw
from ragcache_bench.questions.level import Level
from ragcache_bench.user_questions import read

from ragcache.errors import InvalidArgument
from ragcache.index.chunks import order_by_document
from ragcache.rag import RagCache
from ragcache_finetune.contexts import Asked, Context, read_contexts
from ragcache_finetune.settings import Settings

WORLDS = "worlds"
_LEVEL = Level(mix=(1, 3), bindings=0.6, relations=(1, 2), forms=9, filler=0.4, alike=0.15, least=20, tokens=600)
_ASKED, _WORDS = 6, 750  # questions about invented documents, and their words, at most


def load_contexts(settings: Settings, note: Callable[[str], None]) -> list[Context]:
    """What `--data` names.

    Raises
    ------
    InvalidArgument
        If it is none of the three, or nothing can be learnt from it.
    """
    if settings.questions and not Path(settings.data).is_dir():
        raise InvalidArgument(f"--questions goes with an index, and --data is {settings.data!r}; name its folder there")
    if settings.data == WORLDS:
        return invent(settings.steps * settings.batch // 2 or 1, settings.seed)
    if Path(settings.data).is_dir():
        return retrieve(settings, note)
    return read_contexts(Path(settings.data))


def invent(count: int, seed: int) -> list[Context]:
    """Invented documents, each set with questions about it."""
    rng, found = random.Random(f"worlds {seed}"), list[Context]()
    while len(found) < count:
        made = draw(rng, _LEVEL)
        asked = tuple(Asked(one.text, (one.reply, one.answer)) for one in made.questions[:_ASKED])
        if asked and len(made.chunks) > 1 and sum(len(chunk.split()) for chunk in made.chunks) <= _WORDS:
            found.append(Context(tuple(made.chunks), asked))
    return found


def retrieve(settings: Settings, note: Callable[[str], None]) -> list[Context]:
    """Questions to an index, each with the chunks that are retrieved for it.

    A question none of whose chunks holds an accepted answer teaches guessing: it is left out.

    Raises
    ------
    InvalidArgument
        If there are no questions, one has no answer, or none can be answered from its chunks.
    """
    if settings.questions is None:
        raise InvalidArgument(
            f"--data {settings.data} is an index, which knows no questions; name a JSONL file of them, "
            '{"question": "...", "answers": ["..."]} a line, with --questions'
        )
    asked = read(settings.questions)
    for one in asked:
        if not any(answer.strip() for answer in one.answers):
            raise InvalidArgument(f'line {one.line} of {settings.questions} has no answer to learn; add its "answers"')
    with RagCache.open(settings.data, create=False) as rag:
        lists = [order_by_document(rag.retrieve(one.question, top_k=settings.top_k)) for one in asked]
    found = [(one, tuple(chunk.text for chunk in chunks)) for one, chunks in zip(asked, lists, strict=True)]
    if all(len(texts) < 2 for _, texts in found):
        raise InvalidArgument(
            f"{settings.data} retrieves one chunk for a question, so there is no border between chunks to learn from; "
            "give --top-k 5"
        )
    stated = {one.line: tuple(answer for answer in one.answers if answer.strip()) for one in asked}
    kept = [
        Context(texts, (Asked(one.question, stated[one.line]),))
        for one, texts in found
        if len(texts) > 1 and any(holds(text, stated[one.line]) for text in texts)
    ]
    if not kept:
        raise InvalidArgument(
            f"no chunks that {settings.data} retrieves hold an answer of {settings.questions}; check the answers, or "
            "raise --top-k"
        )
    if len(kept) < len(found):
        note(f"{len(found) - len(kept)} of {len(found)} questions are left out: no retrieved chunk holds their answer")
    return kept
