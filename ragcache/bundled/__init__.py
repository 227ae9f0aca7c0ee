"""What ships with the package: a small reader, an adapter for a larger one, a demo corpus, and questions about it."""

import json
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CorpusQuestion",
    "adapter_path",
    "corpus_path",
    "questions",
    "reader_path",
    "sibling_path",
    "tuned_sibling_path",
]
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class CorpusQuestion:
    """A question about the demo corpus.

    Attributes
    ----------
    id, question, answer, kind : str
        `kind` is one-hop, two-hop or section.
    sources : tuple of str
        Documents, relative to `corpus_path()`, in the order of the hops.
    unseen_phrasing : bool
        The question's form never occurs in the bundled reader's training.
    evidence : tuple of str
        The sentences, word for word, which together give the answer.
    bridge : str
        Two-hop: the name in the middle. The reader says it first, "Mara Voss: Oslo".
    """

    id: str
    question: str
    answer: str
    kind: str
    sources: tuple[str, ...]
    unseen_phrasing: bool
    evidence: tuple[str, ...]
    bridge: str = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """Answers to accept, with and without the name in the middle; the last is what the reader should say."""
        return (self.answer, f"{self.bridge}: {self.answer}") if self.bridge else (self.answer,)


def reader_path() -> Path:
    """Return the folder of the bundled reader, in Hugging Face's layout."""
    return _HERE / "reader"


def sibling_path() -> Path:
    """Return the folder of a reader with half the layers and the same tokenizer, for what need not be exact."""
    return _HERE / "sibling"


def tuned_sibling_path() -> Path:
    """Return the folder of the adapter that tunes the sibling to choose the tokens that the reader would recompute."""
    return _HERE / "sibling-tuned"


def adapter_path() -> Path:
    """Return the folder of the adapter that tunes SmolLM2-135M-Instruct to answer from several passages."""
    return _HERE / "adapter"


def corpus_path() -> Path:
    """Return the folder of the demo corpus."""
    return _HERE / "corpus"


def questions() -> list[CorpusQuestion]:
    """Return the questions about the demo corpus."""
    lines = (_HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [_question(json.loads(line)) for line in lines]


def _question(row: dict[str, object]) -> CorpusQuestion:
    return CorpusQuestion(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()})  # type: ignore[arg-type]
