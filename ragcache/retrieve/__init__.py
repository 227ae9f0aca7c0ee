"""Documents in, vectors out: loading, splitting, embedding and search, each a thin wrap of a library."""

from ragcache.retrieve.boundaries import Layout
from ragcache.retrieve.choices import check_choice
from ragcache.retrieve.discover import Found, find
from ragcache.retrieve.documents import Document, load
from ragcache.retrieve.embed import DEFAULT_EMBEDDER, Embedder, check_embedder, digest_embedder
from ragcache.retrieve.fusion import DEFAULT_RETRIEVER, RETRIEVERS, Retriever, fuse_ranks
from ragcache.retrieve.given import GivenEmbedder, GivenSplitter, TextEmbedder, TextSplitter
from ragcache.retrieve.rerank import Reranker, as_reranker
from ragcache.retrieve.split import EDITION, Limit, Piece, Splitter
from ragcache.retrieve.titles import DEFAULT_TITLES, TITLE_TEMPLATE, TITLES, Titles, add_title, title_line, title_parts
from ragcache.retrieve.vanished import find_standing, gone
from ragcache.retrieve.vectors import Vectors

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_RETRIEVER",
    "DEFAULT_TITLES",
    "EDITION",
    "RETRIEVERS",
    "TITLES",
    "TITLE_TEMPLATE",
    "Document",
    "Embedder",
    "Found",
    "GivenEmbedder",
    "GivenSplitter",
    "Layout",
    "Limit",
    "Piece",
    "Reranker",
    "Retriever",
    "Splitter",
    "TextEmbedder",
    "TextSplitter",
    "Titles",
    "Vectors",
    "add_title",
    "as_reranker",
    "check_choice",
    "check_embedder",
    "digest_embedder",
    "find",
    "find_standing",
    "fuse_ranks",
    "gone",
    "load",
    "title_line",
    "title_parts",
]
