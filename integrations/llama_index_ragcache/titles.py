"""Titles above nodes, for LlamaIndex."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, TransformComponent

from ragcache.retrieve import TITLE_TEMPLATE, add_title


class AddTitles(TransformComponent):
    """Writes each node's title and headings above its text, so that they are embedded, cached and read with it.

    A step of an `IngestionPipeline`, or one of an index's `transformations`, behind the node parser. Headings are what
    `MarkdownNodeParser` leaves in the metadata as `header_path`; the title is the reader's `title`, or the `file_name`.
    A node that stands under them already stays as it is.

    Raises
    ------
    InvalidArgument
        If the template lacks `{title}` or `{text}`, or names something else.
    """

    template: str = TITLE_TEMPLATE
    """How it is written; `{title}` and `{text}` stand in it."""

    def __init__(self, **fields: Any) -> None:
        add_title("", {}, fields.get("template", TITLE_TEMPLATE))
        super().__init__(**fields)

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Write the titles into the nodes."""
        for node in nodes:
            node.set_content(add_title(node.get_content(MetadataMode.NONE), node.metadata, self.template))
        return list(nodes)
