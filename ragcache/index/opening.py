"""How an index is opened: what a caller names, what the index remembers for the rest, and what is refused.

Nothing here imports torch: a wrong name, and a question that cannot be asked, are refused before anything heavy is.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ragcache.checks import check_count
from ragcache.checks import check_question as check_words
from ragcache.errors import IndexMismatch, InvalidArgument, UnusableAdapter, ingest
from ragcache.index.settings import check_codec, check_encoding, no_index, settings_of
from ragcache.method import Method
from ragcache.methods import DEFAULT_METHOD, find_method
from ragcache.model.adapter_config import read_config
from ragcache.model.checkpoint import (
    BUNDLED,
    MODEL_VARIABLE,
    SMOLLM2,
    SMOLLM2_TUNED,
    check_device,
    check_dtype,
    check_model,
    default_model,
)
from ragcache.model.cost import tokens_to_outweigh_states
from ragcache.model.tuning import read_tuning
from ragcache.retrieve import (
    DEFAULT_EMBEDDER,
    DEFAULT_RETRIEVER,
    DEFAULT_TITLES,
    RETRIEVERS,
    Embedder,
    GivenEmbedder,
    Reranker,
    Retriever,
    TextEmbedder,
    as_reranker,
    check_choice,
    check_embedder,
    digest_embedder,
    find_standing,
)
from ragcache.retrieve.given import AnyEmbedder, AnySplitter, splitter_name, splitting
from ragcache.store import CODECS, RAW, Catalog

if TYPE_CHECKING:
    from ragcache.model.reader import Reader

CHUNK_TOKENS, TOP_K = 256, 5
#: The same for models that read others best: the bundled one as it was trained; a second chunk mostly misleads SmolLM2.
_SIZES = {BUNDLED: (72, 8), SMOLLM2: (256, 1), SMOLLM2_TUNED: (256, 4)}


@dataclass(frozen=True)
class Opening:
    """Everything an index is opened with; `resolve` makes it.

    Attributes
    ----------
    path : Path
        The index's folder.
    known : dict
        What the index remembers; empty for a new one.
    model : str or Reader
        What answers.
    adapter : str or None
        Folder of the adapter to merge into a model that is loaded by name.
    dtype : str
        Of the model's weights.
    device : str or None
        Where the model computes.
    method : Method
        What answers as long as the index is open: the one named, else the index's own.
    embedder : str or TextEmbedder
        What makes vectors.
    system : str or None
        The system prompt; None for the index's own.
    splitter : AnySplitter or None
        What splits documents; None for the built-in one.
    retriever : Retriever
        How chunks are found.
    reranker : Reranker or None
        What puts them in their final order.
    embedder_digest : str
        Of the weights of an embedder that is named; empty where they are not on this machine yet.
    kv : str
        How KV is written, one of `ragcache.store.CODECS`.
    """

    path: Path
    known: dict[str, Any]
    model: "str | Reader"
    adapter: str | None
    dtype: str
    device: str | None
    method: Method
    embedder: str | TextEmbedder
    system: str | None
    splitter: AnySplitter | None
    retriever: Retriever
    reranker: Reranker | None
    embedder_digest: str = ""
    kv: str = RAW

    def load_reader(self) -> "Reader":
        """The model; one that was loaded already is taken as it is."""
        from ragcache.model.loading import load_reader

        if not isinstance(self.model, str):
            return self.model
        reuse = self.method.encode is not None
        return load_reader(self.model, dtype=self.dtype, device=self.device, reuse=reuse, adapter=self.adapter)

    def check_tuning(self, method: str | Method) -> None:
        """Refuse a method for which the model was not tuned, before anything heavy is loaded.

        Raises
        ------
        UntunedReader
            As `Method.check_tuning`.
        """
        tuning = read_tuning(self.adapter or self.model) if isinstance(self.model, str) else self.model.tuning
        name = self.model if isinstance(self.model, str) else self.model.name
        label = f"{name} with the adapter {self.adapter}" if self.adapter else name
        find_method(method).check_tuning(tuning, label)

    def load_embedder(self) -> AnyEmbedder:
        """What makes vectors."""
        return Embedder(self.embedder) if isinstance(self.embedder, str) else GivenEmbedder(self.embedder)

    def places(self, reader: "Reader") -> dict[str, str | None]:
        """By which names the model, its adapter and the embedder are found again, from whichever folder."""
        embedder = _absolute(self.embedder) if isinstance(self.embedder, str) else self.embedder.name
        return {"name": _absolute(reader.name), "adapter": reader.adapter or None, "embedder": embedder}

    def settings(self, reader: "Reader") -> dict[str, Any]:
        """What the index is to remember, a model having been loaded; of one that is known, `places` stay as they are.

        Where they are others now, it is for `ingest` to remember that, and not for a question.
        """
        chunk_tokens, top_k = _SIZES.get(reader.name, (CHUNK_TOKENS, TOP_K))
        if reader.tuning is not None:  # by `ragcache finetune`, which teaches to read several chunks
            top_k = max(top_k, TOP_K)
        if not self.known and self.method.encode is not None and reader.states and not reader.refused:
            chunk_tokens = self._state_tokens(reader, chunk_tokens)
        given = not isinstance(self.embedder, str) if not self.known else self.known.get("embedder_given")
        settings = {
            **{name: self.known.get(name) if self.known else place for name, place in self.places(reader).items()},
            "dtype": self.dtype,
            "method": self.known.get("method") or self.method.name,  # another one holds for this opening
            "chunk_tokens": self.known.get("chunk_tokens") or chunk_tokens,
            "top_k": self.known.get("top_k") or top_k,
            "titles": self.known.get("titles") or ("none" if self.known else DEFAULT_TITLES),  # older ones had none
            "embedder_given": given,
            "embedder_digest": self.embedder_digest or self.known.get("embedder_digest"),
            "splitter": "" if self.splitter is None else splitter_name(self.splitter),
            "kv": self.kv,
        }
        return {name: value for name, value in settings.items() if value}

    def _state_tokens(self, reader: "Reader", least: int) -> int:
        """Tokens of a chunk from which on most of what is kept is KV, no more than the embedder takes."""
        even = tokens_to_outweigh_states(reader.bytes_per_chunk, reader.bytes_per_token)
        return max(least, min(even, self.load_embedder().max_tokens))


def resolve(
    path: str | Path,
    *,
    model: "str | Reader | None" = None,
    adapter: str | Path | None = None,
    method: str | None = None,
    embedder: str | TextEmbedder | None = None,
    dtype: str | None = None,
    device: str | None = None,
    system: str | None = None,
    splitter: AnySplitter | None = None,
    retriever: str | None = None,
    reranker: str | Reranker | None = None,
    kv: str | None = None,
    create: bool = True,
) -> Opening:
    """What an index is opened with, as `RagCache.open` describes it; refuses what is wrong about it.

    Raises
    ------
    EmptyIndex, IndexFormat, IndexMismatch, InvalidArgument, MissingExtra, UnusableAdapter
        As `RagCache.open`.
    """
    path = Path(path)
    known = settings_of(path)
    if not known and not create:
        raise no_index(path)
    chosen = find_method(method or known.get("method") or DEFAULT_METHOD)
    name = model or known.get("name") or default_model()
    check_device(device)
    if isinstance(name, str):
        _check_model(path, name, remembered=model is None and bool(known), by_default=not model and not known)
    added = _adapter(path, known, name, adapter, by_default=not model and not known)
    embeds = _embedder(path, known, embedder)
    return Opening(
        path=path,
        known=known,
        model=name,
        adapter=added,
        dtype=_dtype(path, known.get("dtype"), dtype),
        device=device,
        method=chosen,
        embedder=embeds,
        system=system,
        splitter=_splitter(path, known, splitter),
        retriever=check_choice("retriever", retriever or DEFAULT_RETRIEVER, RETRIEVERS),
        reranker=as_reranker(reranker),
        embedder_digest=_digest(path, known, embeds) if isinstance(embeds, str) else "",
        kv=_codec(path, known, kv),
    )


def given_reader(model: Any, tokenizer: Any) -> "str | Reader | None":
    """A name or a reader as it is; a loaded Hugging Face model with its tokenizer as a reader.

    Raises
    ------
    InvalidArgument
        If one of the two is missing, or the model is none.
    UnsupportedModel
        If its KV cannot be moved.
    """
    if model is None or isinstance(model, str) or hasattr(model, "rotator"):
        if tokenizer is not None:
            raise InvalidArgument("a tokenizer goes with a loaded model; name both, or leave the tokenizer out")
        return cast("str | Reader | None", model)
    if tokenizer is None or not hasattr(model, "config"):
        raise InvalidArgument(
            f"a {type(model).__name__} was given as the model; give a name, a Reader, or a loaded Hugging Face model "
            "together with tokenizer=…"
        )
    from ragcache.model.reader import Reader

    return Reader(model, tokenizer)


def check_question(
    path: str | Path, question: str | None, *, top_k: int | None, method: str | Method | None, recompute: float | None
) -> None:
    """Refuse what could not be asked of an index.

    Parameters
    ----------
    path : str or Path
        The index's folder.
    question : str or None
        The user's words; None where they are not known yet.
    top_k, method, recompute
        As in `RagCache.ask`.

    Raises
    ------
    EmptyIndex, MissingEncoding, InvalidArgument
        As `RagCache.ask`.
    """
    path = Path(path)
    known = settings_of(path)
    if not known:
        raise no_index(path)
    row = find_method(method or known.get("method") or DEFAULT_METHOD)
    row.budget(recompute)
    check_retrieval("?" if question is None else question, TOP_K if top_k is None else top_k)
    with closing(Catalog(path / "catalog.sqlite")) as catalog:
        check_encoding(catalog, path, row)


def check_paths(
    path: str | Path, paths: Sequence[str | Path], *, exclude: Sequence[str] = (), ignore_files: bool = True
) -> None:
    """Refuse files and folders that an index could not ingest.

    Parameters
    ----------
    path : str or Path
        The index's folder, if there is one yet.
    paths, exclude, ignore_files
        As in `RagCache.ingest`.

    Raises
    ------
    NoDocuments, UnsupportedDocument, UnreadableDocument, InvalidArgument
        As `RagCache.ingest`.
    """
    find_standing(paths, _sources(Path(path)), exclude=exclude, ignore_files=ignore_files)


def _sources(path: Path) -> Sequence[str]:
    if not settings_of(path):
        return ()
    with closing(Catalog(path / "catalog.sqlite")) as catalog:
        return catalog.sources()


def check_retrieval(question: str, top_k: int) -> None:
    """Refuse a question that cannot be asked, and fewer chunks than one.

    Raises
    ------
    InvalidArgument
        The message names what was given.
    """
    check_count("top_k", top_k, 1, "at least one chunk must be retrieved")
    check_words(question)


def _check_model(path: Path, name: str, *, remembered: bool, by_default: bool) -> None:
    try:
        check_model(name)
    except InvalidArgument as error:
        if by_default:
            raise InvalidArgument(
                f"the environment variable {MODEL_VARIABLE} names no model that is here: {error}"
            ) from error
        hub_id = "/" in name and not Path(name).is_absolute()
        if hub_id or not remembered:  # how it is fetched, or what else to name, the error says
            raise
        raise InvalidArgument(
            f"the index {path} was made by {name}, and there is no model of that name; say where the same model lies "
            "with --model, or give it to RagCache.open"
        ) from error


def _adapter(
    path: Path, known: dict[str, Any], model: "str | Reader", given: str | Path | None, *, by_default: bool
) -> str | None:
    """The folder of the adapter that was given; else of the index's own, which goes with the index's own model."""
    if given is not None:
        _check_given(model, given, by_default=by_default)
        return str(Path(given).absolute())
    own: str | None = known.get("adapter")
    if not own or not isinstance(model, str) or _absolute(model) != _absolute(known["name"]):
        return None
    try:
        read_config(own)
    except UnusableAdapter as error:
        raise UnusableAdapter(
            f"the index {path} was made by {model} with the adapter {own}: {error}; if it lies elsewhere now, name "
            "that folder with --adapter"
        ) from error
    return own


def _check_given(model: "str | Reader", adapter: str | Path, *, by_default: bool) -> None:
    """Refuse an adapter that has no model to go into."""
    if not isinstance(model, str):
        raise InvalidArgument(
            f"the adapter {str(adapter)!r} cannot be merged into {model.name}, which is loaded already; name the model "
            "instead, load it by Reader.load(NAME, adapter=…), or merge the adapter with PEFT before"
        )
    base = read_config(adapter).base
    if by_default and not os.environ.get(MODEL_VARIABLE):
        raise InvalidArgument(
            f"the adapter {str(adapter)!r} was trained on {base or 'a model'}, and a new index would be made by "
            f"{model}; name the adapter's model with --model"
        )


def _dtype(path: Path, known: str | None, given: str | None) -> str:
    check_dtype(given or "auto")
    if given and known and "auto" not in (given, known) and given != known:
        raise IndexMismatch(
            f"the index {path} was made in {known}, not {given}; leave the dtype out, or run "
            f"`{ingest('NEW', paths='PATH…')} --dtype {given}` for another index"
        )
    return given or known or "auto"


def _embedder(path: Path, known: dict[str, Any], given: str | TextEmbedder | None) -> str | TextEmbedder:
    own = str(known.get("embedder") or DEFAULT_EMBEDDER)
    name = own if given is None else given if isinstance(given, str) else GivenEmbedder(given).name
    moved = isinstance(given, str) and (_absolute(given) == _absolute(own) or _has_weights(given, known))
    if known and name != own and not moved:
        raise InvalidArgument(
            f"the index {path} was embedded by {own}, not {name}; ingest into another --index to change it"
        )
    if given is not None and not isinstance(given, str):
        return given
    if known.get("embedder_given"):
        raise IndexMismatch(
            f"the index {path} was embedded by {own}, which is no model but a program's own embedder; open it from "
            f"Python, by RagCache.open({str(path)!r}, embedder=…) with an embedder of that name"
        )
    check_embedder(name)
    return name


def _has_weights(embedder: str, known: dict[str, Any]) -> bool:
    """Whether an embedder's weights are those that an index was embedded by."""
    with suppress(InvalidArgument):
        check_embedder(embedder)
        return bool(known.get("embedder_digest")) and digest_embedder(embedder) == known["embedder_digest"]
    return False


def _absolute(name: str) -> str:
    """The absolute path of a model's folder or file; any other name as it is."""
    given = name in (BUNDLED, SMOLLM2, SMOLLM2_TUNED, DEFAULT_EMBEDDER) or not os.path.exists(name)
    return name if given else os.path.abspath(name)


def _digest(path: Path, known: dict[str, Any], embedder: str) -> str:
    """The digest of a named embedder's weights, which have to be those that the index was embedded by."""
    own, digest = known.get("embedder_digest"), digest_embedder(embedder)
    if own and digest and own != digest:
        raise IndexMismatch(
            f"the index {path} was embedded by {embedder} with other weights ({own[:12]}) than are there now "
            f"({digest[:12]}); put the former ones back, or run `{ingest('NEW', paths='PATH…')}` for another index"
        )
    return digest


def _codec(path: Path, known: dict[str, Any], given: str | None) -> str:
    """The codec of the index's KV, which is the one that was asked for, if any was."""
    own = str(known.get("kv") or RAW) if known else None
    chosen = check_choice("kv", given or own or RAW, tuple(CODECS))
    check_codec(path, own, chosen)
    return chosen


def _splitter(path: Path, known: dict[str, Any], given: AnySplitter | None) -> AnySplitter | None:
    own = str(known.get("splitter") or "")
    name = "" if given is None else splitter_name(given)
    if given is None:
        return _absent_splitter(path, own) if own else None
    splitting(given)
    if known and name != own:
        raise IndexMismatch(
            f"the index {path} was split by {own or 'the built-in splitter'}, not by {name}; ingest into another index "
            "to change it"
        )
    return given


def _absent_splitter(path: Path, own: str) -> Callable[[str], Sequence[str]]:
    """What stands for a splitter that nobody gave: questions need none, documents do."""

    def refuse(text: str) -> NoReturn:
        raise IndexMismatch(
            f"the documents of the index {path} were split by {own}; to ingest, open it from Python, by "
            f"RagCache.open({str(path)!r}, splitter=…) with a splitter of that name"
        )

    refuse.__qualname__ = own
    return refuse
