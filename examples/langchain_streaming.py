"""LangChain: stream an answer over documents that are handed over as documents, not pasted into a prompt."""

from tempfile import TemporaryDirectory

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk
from langchain_minilm import MiniLM
from langchain_ragcache import ChatRagCache, RagCacheVectorStore

from ragcache import RagCache
from ragcache.bundled import corpus_path


def main(folder: str, question: str = "Who is the founder of Grefi Partners?") -> AIMessageChunk:
    """Print an answer piece by piece, and what happened."""
    with RagCache.open(f"{folder}/index", model="bundled") as rag:
        store = RagCacheVectorStore(Chroma("partners", MiniLM(), persist_directory=f"{folder}/chroma"), rag)
        for page in corpus_path().glob("partners/*.md"):
            notes = page.read_text(encoding="utf-8").split("\n\n")
            store.add_documents([Document(note, metadata={"source": page.name}) for note in notes])
        model = ChatRagCache(rag, max_tokens=64)
        whole = AIMessageChunk(content="")
        for piece in model.stream(question, documents=store.similarity_search(question, k=6)):
            print(piece.text, end="", flush=True)
            whole += piece
    happened = whole.response_metadata["ragcache"]
    print(f"\n{whole.usage_metadata} {[chunk['cache'] for chunk in happened['chunks']]} {happened['tokens']}")
    return whole


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
