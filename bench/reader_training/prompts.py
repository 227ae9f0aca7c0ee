"""The three prompt wordings as segments of text: ours, and two in the words of well-known frameworks' defaults."""

import random
from dataclasses import dataclass

SYSTEM = "You answer questions from the notes you are given."


@dataclass(frozen=True)
class Wording:
    """Text before the chunks, between chunks and question, and after the question."""

    before: str
    ask: str
    after: str


OURS = Wording(f"<|bos|><|system|>{SYSTEM}<|end|><|user|>Notes:\n\n", "Question: {q}", "<|end|><|assistant|>")
_PIECES = tuple(
    Wording(f"<|bos|><|user|>{text}\n\n", "Question: {q}", f"\n{answer}:<|end|><|assistant|>")
    for answer in ("Helpful answer", "Helpful Answer", "Answer")
    for text in (
        "Use the pieces of context below to answer the question at the end.",
        "Use the pieces of context below to answer the question at the end. If you do not know the answer, say so.",
        "Answer the question at the end from these pieces of context. Do not make anything up.",
        "Use the context to answer the question at the end. Keep the answer short.",
    )
)
_LINE = "-" * 21
_BELOW = tuple(
    Wording(f"<|bos|>{who}<|user|>{text}\n{_LINE}\n", f"{_LINE}\n{rule}\nQuery: {{q}}", "\nAnswer:<|end|><|assistant|>")
    for who in ("", f"<|system|>{SYSTEM}<|end|>")
    for text in ("Context information is below.", "Here is some context.")
    for rule in (
        "Use the context information and no prior knowledge to answer the query.",
        "With the context above and nothing else, answer the query.",
    )
)


def draw_wording(rng: random.Random, foreign: float) -> Wording:
    """Return ours, or with probability `foreign` one of the others."""
    if rng.random() >= foreign:
        return OURS
    return rng.choice(rng.choice((_PIECES, _BELOW)))
