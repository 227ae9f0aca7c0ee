"""Ingest a folder, ask a question, and see what was reused; offline, with the built-in test model."""

import sys
from tempfile import TemporaryDirectory

from ragcache import RagCache
from ragcache.bundled import corpus_path


def main(index: str, documents: str, question: str) -> str:
    """Ingest the documents, then answer a question from their stored KV."""
    with RagCache.open(index, model="bundled") as rag:  # "Qwen/Qwen2.5-7B-Instruct" for real work
        rag.ingest([documents])
        answer = rag.ask(question)
        print(answer.text)
        print(answer.report.line())
    return answer.text


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder, *(sys.argv[1:] or [str(corpus_path() / "partners"), "Who is the founder of Grefi Partners?"]))
