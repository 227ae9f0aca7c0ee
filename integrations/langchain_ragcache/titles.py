"""Titles above a splitter's chunks, for LangChain."""

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import BaseDocumentTransformer, Document

from ragcache.retrieve import TITLE_TEMPLATE, add_title


class AddTitles(BaseDocumentTransformer):
    """Writes each chunk's title and headings above its text, so that they are embedded, cached and read with it.

    Headings are what `MarkdownHeaderTextSplitter` and `HTMLHeaderTextSplitter` leave in the metadata as `Header 1` to
    `Header 6`; the title is the loader's `title`, or the name of the file. A chunk that stands under them already stays
    as it is.

    Parameters
    ----------
    template : str
        How it is written; `{title}` and `{text}` stand in it.

    Raises
    ------
    InvalidArgument
        If the template lacks one of the two, or names something else.
    """

    def __init__(self, template: str = TITLE_TEMPLATE) -> None:
        add_title("", {}, template)
        self.template = template

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return copies of the documents with their titles; everything else about them stays."""
        return [
            one.model_copy(update={"page_content": add_title(one.page_content, one.metadata, self.template)})
            for one in documents
        ]
