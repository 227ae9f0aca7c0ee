"""`AddTitles` behind the splitters that people use: what is embedded, cached and shown is under its title."""

import pytest
from langchain_core.documents import Document
from langchain_ragcache import AddTitles
from langchain_text_splitters import MarkdownHeaderTextSplitter
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.schema import MetadataMode
from llama_index_ragcache import AddTitles as AddNodeTitles

from ragcache.errors import InvalidArgument

GUIDE = "# Harbour\n\nShips come.\n\n## Fees\n\nIt costs 40 crowns.\n"
TITLED = ["Harbour guide \u203a Harbour\nShips come.", "Harbour guide \u203a Harbour \u203a Fees\nIt costs 40 crowns."]


def test_chunks_of_a_langchain_splitter_stand_under_their_headings() -> None:
    chunks = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")]).split_text(GUIDE)
    chunks = [Document(one.page_content, id=str(i), metadata={**one.metadata, "source": "docs/Harbour guide.md"})
              for i, one in enumerate(chunks)]  # fmt: skip
    titled = AddTitles().transform_documents(chunks)
    assert [one.page_content for one in titled] == TITLED
    assert [(one.id, one.metadata) for one in titled] == [(one.id, one.metadata) for one in chunks]
    assert AddTitles().transform_documents(titled) == titled
    assert chunks[0].page_content == "Ships come."


def test_nodes_of_a_llama_index_pipeline_stand_under_their_headings() -> None:
    document = LlamaDocument(text=GUIDE, metadata={"file_name": "Harbour guide.md"})
    nodes = IngestionPipeline(transformations=[MarkdownNodeParser(), AddNodeTitles()]).run(documents=[document])
    said = [node.get_content(MetadataMode.NONE) for node in nodes]
    assert said == ["Harbour guide\n# Harbour\n\nShips come.", f"{TITLED[1][:23]}\n## Fees\n\nIt costs 40 crowns."]
    assert [node.get_content(MetadataMode.NONE) for node in AddNodeTitles()(nodes)] == said


@pytest.mark.parametrize("add", [AddTitles, AddNodeTitles])
def test_a_template_without_a_title_is_refused_at_once(add: type) -> None:
    with pytest.raises(InvalidArgument, match="must name"):
        add(template="{text}")
