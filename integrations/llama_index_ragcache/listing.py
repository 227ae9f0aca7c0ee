"""What LlamaIndex's vector stores hold, and which ids they have: each kind says it in its own way, some not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from ragcache.index.chunks import text_id
from ragcache.index.collection import Entry, valid_unicode

_PAGE = 500


def listed(store: BasePydanticVectorStore) -> tuple[list[BaseNode], bool]:
    """The nodes that a store lists, and whether those are all that it has.

    Raises
    ------
    NotImplementedError
        If it lists none.
    """
    if hasattr(store, "parse_to_query_result"):
        return list(_scrolled(store)), True
    try:
        return list(store.get_nodes(None, None)), hasattr(store, "_collection")  # Chroma; others may stop at a limit
    except (NotImplementedError, ValueError) as error:
        raise NotImplementedError(f"{type(store).__name__} has no way to list its nodes ({error})") from error


def entry_of(node: BaseNode) -> Entry:
    """A node's own text, as a piece of its document; what is of none is called by its own id in front of people."""
    start = node.start_char_idx if isinstance(node, TextNode) else None
    about = {**node.metadata, "ref_doc_id": node.ref_doc_id or node.node_id, "start_char_idx": start}
    entry = Entry.of(node.node_id, node.get_content(MetadataMode.NONE), about)
    # `delete` goes by `ref_doc_id`, whatever the metadata says.
    return replace(entry, document=valid_unicode(node.ref_doc_id or text_id(entry.words)))


def ids_in(store: BasePydanticVectorStore, names: Sequence[str]) -> list[str] | None:
    """Which of some names stand in the table of a store that keeps no text; None for other kinds."""
    table = getattr(getattr(store, "data", None), "embedding_dict", None)
    return None if table is None else [name for name in names if name in table]


def _scrolled(store: Any) -> Iterator[BaseNode]:
    """A Qdrant collection's nodes, page by page: asked without, it stops at some thousand."""
    offset = None
    while True:
        points, offset = store.client.scroll(store.collection_name, limit=_PAGE, offset=offset, with_payload=True)
        yield from store.parse_to_query_result(points).nodes
        if offset is None:
            return
