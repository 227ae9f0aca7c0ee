"""A Chroma collection that LangChain filled without ragcache: adopted once, then asked with every chunk stored."""

from tempfile import TemporaryDirectory

from chromadb import PersistentClient
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_minilm import MiniLM
from langchain_ragcache import ChatRagCache, RagCacheVectorStore

from ragcache import RagCache
from ragcache.bundled import corpus_path


def fill(folder: str) -> None:
    """What another program did some time ago."""
    pages = sorted(corpus_path().glob("partners/*.md"))
    notes = [(note, page.name) for page in pages for note in page.read_text(encoding="utf-8").split("\n\n")]
    with PersistentClient(folder) as client:
        store = Chroma("handbook", MiniLM(), client=client)
        store.add_documents([Document(note, metadata={"source": source}) for note, source in notes])


def main(folder: str, question: str = "Who is the founder of Grefi Partners?") -> AIMessage:
    """Adopt the collection, as `ragcache adopt` does, and ask."""
    fill(f"{folder}/chroma")
    with RagCache.open(f"{folder}/index", model="bundled") as rag:
        print(rag.adopt(f"{folder}/chroma", "handbook"))
        store = RagCacheVectorStore(Chroma("handbook", MiniLM(), persist_directory=f"{folder}/chroma"), rag)
        return ChatRagCache(rag).invoke(question, documents=store.similarity_search(question, k=6))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(main(folder).text)
