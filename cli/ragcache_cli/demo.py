"""`ragcache demo`: the bundled corpus and reader, from nothing to checked answers."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcache_cli.options import AsJson, find_path
from ragcache_cli.terminal import note, say, say_json

if TYPE_CHECKING:
    from ragcache.bundled import CorpusQuestion
    from ragcache.engine.answer import Answer
    from ragcache.rag import RagCache

#: Ids in the bundled questions, some of those it gets right (how many those are: docs/benchmarks/corpus-reader.json);
#: q151 and later are two-hop, q004, q009 and q178 are phrased as training never was.
QUESTIONS = ("q001", "q002", "q003", "q004", "q005", "q009", "q153", "q178")
COMPARED = "q153"

_NEXT = """
The model that answered here is made for this corpus. Your own documents want another one.
To try it out:  ragcache ingest PATH\u2026 --model smollm2-tuned --index smollm2
                ragcache ask "your question" --index smollm2 --explain
For real work:  ragcache doctor --model Qwen/Qwen2.5-7B-Instruct
                ragcache ingest PATH\u2026 --model Qwen/Qwen2.5-7B-Instruct --index qwen
                ragcache ask "your question" --index qwen --compare"""


def demo(
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=str, callback=find_path, help="Keep the index here; without it, it is thrown away."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ingest the bundled corpus, ask questions about it, and check the answers.

    Ends with exit code 1 if an answer is wrong.
    """
    from ragcache.model.loading import BUNDLED
    from ragcache.rag import RagCache

    with ExitStack() as stack:
        rag = stack.enter_context(RagCache.open(index or _temporary(stack), model=BUNDLED))
        ingested = _ingested(rag)
        if not as_json:
            say(f"{ingested['chunks']:,} chunks ingested in {ingested['seconds']:,.0f} s, to be read by {rag.method}\n")
        asked = [_asked(rag, question, silent=as_json) for question in _chosen()]
    right = sum(row["right"] for row in asked)
    if as_json:
        say_json({"ingest": ingested, "answers": asked, "right": right})
    else:
        say(f"{right} of {len(asked)} answers are right\n{_NEXT}")
    if right < len(asked):
        note("a wrong answer ends the demo with exit code 1")
        raise typer.Exit(1)


def _temporary(stack: ExitStack) -> Path:
    from tempfile import TemporaryDirectory

    return Path(stack.enter_context(TemporaryDirectory(prefix="ragcache-")))


def _ingested(rag: "RagCache") -> dict[str, Any]:
    from ragcache import bundled
    from ragcache_cli.ingest import run

    return asdict(run(rag, [bundled.corpus_path()]))


def _chosen() -> "list[CorpusQuestion]":
    from ragcache import bundled

    known = {question.id: question for question in bundled.questions()}
    return [known[name] for name in QUESTIONS]


def _asked(rag: "RagCache", question: "CorpusQuestion", *, silent: bool) -> dict[str, Any]:
    answer = rag.ask(question.question, compare=question.id == COMPARED)
    right = answer.text.strip(" .").casefold() in {accepted.casefold() for accepted in question.accepted}
    if not silent:
        _show(question, answer, right=right)
    return {"id": question.id, "kind": question.kind, "gold": question.answer, "right": right, **answer.as_dict()}


def _show(question: "CorpusQuestion", answer: "Answer", *, right: bool) -> None:
    mark = "\u2713" if right else f"\u2717 (it is {question.answer})"
    say(f"{question.question}  [{question.kind}]\n  {answer.text} {mark}")
    say(f"  from {', '.join(dict.fromkeys(_document(source.source) for source in answer.sources))}")
    say(f"  {answer.report.line(answer.comparison)}\n")


def _document(source: str) -> str:
    from ragcache import bundled

    return str(Path(source).relative_to(bundled.corpus_path().absolute()))
