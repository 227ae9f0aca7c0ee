"""A RAG application in LlamaIndex: llama_index_before.py and llama_index_after.py differ in what ragcache changes."""

from tempfile import TemporaryDirectory

from chromadb import PersistentClient
from llama_index.core import ChatPromptTemplate, SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index_minilm import MiniLM
from llama_index_ragcache import RagCacheLLM, RagCacheVectorStore

from ragcache import RagCache
from ragcache.bundled import corpus_path, reader_path

MODEL = str(reader_path())  # a folder, or a name on the hub
SYSTEM = ChatMessage("You answer questions from the notes you are given.", role="system")
ASK = ChatMessage("Notes:\n\n{context_str}\n\nQuestion: {query_str}", role="user")


def main(folder: str) -> BaseQueryEngine:
    """Read, split and embed files; the engine that answers from them."""
    pages = SimpleDirectoryReader(str(corpus_path() / "partners")).load_data()
    collection = PersistentClient(f"{folder}/chroma").get_or_create_collection("partners")
    rag = RagCache.open(f"{folder}/index", model=MODEL)
    store = RagCacheVectorStore(ChromaVectorStore(collection), rag)
    storage = StorageContext.from_defaults(vector_store=store)
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(pages)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=MiniLM())
    llm = RagCacheLLM(rag)
    return index.as_query_engine(llm, text_qa_template=ChatPromptTemplate([SYSTEM, ASK]), similarity_top_k=6)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(main(folder).query("Who is the founder of Grefi Partners?"))
