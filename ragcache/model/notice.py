"""What the bundled test model says of itself wherever it answers people, and what it does not try to read."""

import logging
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from ragcache.model.checkpoint import SMOLLM2_TUNED
from ragcache.model.loading import BUNDLED
from ragcache.model.reader import Reader

TEST_MODEL = (
    "the small built-in test model answers here, and is mostly wrong about documents of your own; name a real model "
    "for a new index: `ragcache ingest PATH\u2026 --model smollm2-tuned --index smollm2`, or "
    'RagCache.open("smollm2", model="smollm2-tuned")'
)
SMALL_MODEL = (
    "SmolLM2, tuned to read passages, answers from this index: a small model of 135 million parameters, to try things "
    "out with; name a larger one for a new index with --model NAME, or by the environment variable RAGCACHE_MODEL"
)
UNREADABLE = (
    "The small built-in test model cannot read this text: it knows the letters of plain English only. Name a real "
    "model that knows the language, for a new index: `ragcache ingest PATH\u2026 --model Qwen/Qwen2.5-7B-Instruct "
    '--index qwen`, or RagCache.open("qwen", model="Qwen/Qwen2.5-7B-Instruct").'
)
_MOST = 0.5  # of a text's letters; French and German have some 0.05 that it does not know, Greek and Chinese have 1
_log = logging.getLogger(__name__)


def is_test_model(reader: Reader) -> bool:
    """Whether a reader is the bundled one."""
    return reader.name == BUNDLED


def describe_model(reader: Reader, *, new: bool, by_default: bool) -> str:
    """What people should know of an index's model; more where the index is new, and nobody named the model."""
    if is_test_model(reader):
        return TEST_MODEL
    return SMALL_MODEL if by_default and new and reader.name == SMOLLM2_TUNED else ""


@cache
def warn_once() -> None:
    """Log, once in a process, that the test model answers."""
    _log.warning(TEST_MODEL)


def can_read(reader: Reader, texts: Iterable[str]) -> bool:
    """Whether the test model knows most letters of each text, a question and its chunks; any other model does."""
    if not is_test_model(reader):
        return True
    known = _letters(reader.tokenizer)
    spelt = [[*filter(str.isalpha, text)] for text in texts]
    return all(sum(letter not in known for letter in letters) <= _MOST * len(letters) for letters in spelt)


@lru_cache(maxsize=1)
def _letters(tokenizer: Any) -> frozenset[str]:
    """Those that stand in tokens as such; any other comes as several tokens, a byte or two each."""
    return frozenset("".join(tokenizer.batch_decode([[token] for token in range(len(tokenizer))])))
