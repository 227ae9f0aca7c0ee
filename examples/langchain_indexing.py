"""LangChain's `index`: a document is added, changes, and goes, and its KV with it."""

from tempfile import TemporaryDirectory

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_minilm import MiniLM
from langchain_ragcache import RagCacheVectorStore

from ragcache import RagCache

FERRY = Document("The ferry leaves at nine. It crosses the sound in an hour.", metadata={"source": "ferry"})
LATER = Document("The ferry leaves at ten. It crosses the sound in an hour.", metadata={"source": "ferry"})
TOWER = Document("The tower is open until six. The last tour begins at five.", metadata={"source": "tower"})


def main(folder: str) -> list[tuple[int, int, int]]:
    """Chunks in the vector store, chunks in the index, and bytes of KV, after each step."""
    steps = [[FERRY, TOWER], [FERRY, TOWER], [LATER, TOWER], [TOWER], []]
    seen = []
    with RagCache.open(f"{folder}/index", model="bundled") as rag:
        chroma = Chroma("handbook", MiniLM(), persist_directory=f"{folder}/chroma")
        store, records = RagCacheVectorStore(chroma, rag), InMemoryRecordManager("handbook")
        records.create_schema()
        for documents in steps:
            done = index(documents, records, store, cleanup="full", source_id_key="source", key_encoder="sha256")
            stats = rag.stats()
            print(done, f"{stats['chunks']} chunks, {stats['bytes']:,} bytes of KV")
            seen.append((len(chroma.get()["ids"]), stats["chunks"], stats["bytes"]))
    return seen


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
