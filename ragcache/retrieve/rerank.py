"""Candidates in a better order: a cross-encoder reads the question with each of them."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ragcache.errors import InvalidArgument
from ragcache.model.hub import check_name, explain_loading
from ragcache.retrieve.needs import needs

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class Reranker(Protocol):
    """Judges how well texts answer a question."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text, higher for a better one."""


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers, loaded at its first use.

    Parameters
    ----------
    name : str
        Hub id or folder, such as `cross-encoder/ms-marco-MiniLM-L6-v2`.
    device : str
        Where it runs.

    Raises
    ------
    InvalidArgument
        If there is no such folder, or nothing of that name is on this machine and the hub may not be asked.
    """

    def __init__(self, name: str, device: str = "cpu") -> None:
        check_name(name, "the reranker", "--rerank")
        self.name = name
        self.device = device

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """A number for each text.

        Raises
        ------
        InvalidArgument
            If the model can't be loaded, or gives more than one number for a pair.
        """
        scores = np.asarray(self._model.predict([(question, text) for text in texts], show_progress_bar=False))
        if scores.shape != (len(texts),):
            raise InvalidArgument(
                f"the reranker {self.name} gave {scores.shape} for {len(texts)} texts; name a cross-encoder with one "
                "label, such as cross-encoder/ms-marco-MiniLM-L6-v2"
            )
        return [float(score) for score in scores]

    @cached_property
    def _model(self) -> "CrossEncoder":
        with needs():
            from sentence_transformers import CrossEncoder
        try:
            return CrossEncoder(
                self.name, device=self.device, trust_remote_code=False, model_kwargs={"use_safetensors": True}
            )
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"the reranker {self.name} could not be loaded ({explain_loading(error)}); name a folder or hub "
                "model that sentence-transformers can read as a cross-encoder"
            ) from error


def as_reranker(given: str | Reranker | None) -> Reranker | None:
    """A reranker by its name, or a program's own.

    Raises
    ------
    InvalidArgument
        If it is neither.
    """
    if isinstance(given, str):
        return CrossEncoderReranker(given)
    if given is not None and not callable(getattr(given, "score", None)):
        raise InvalidArgument(
            f"{type(given).__name__} is no reranker: it needs score(question, texts); name a cross-encoder instead"
        )
    return given
