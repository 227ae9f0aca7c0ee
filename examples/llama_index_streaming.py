"""LlamaIndex: stream an answer over nodes that are handed over as nodes, not pasted into a prompt."""

from tempfile import TemporaryDirectory

from chromadb import PersistentClient
from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.node_parser import SentenceSplitter
from llama_index.vector_stores.chroma import ChromaVectorStore
from llama_index_minilm import MiniLM
from llama_index_ragcache import RagCacheLLM, RagCacheSynthesizer, RagCacheVectorStore

from ragcache import RagCache
from ragcache.bundled import corpus_path


def main(folder: str, question: str = "Who is the founder of Grefi Partners?") -> StreamingResponse:
    """Print an answer piece by piece, and what happened."""
    collection = PersistentClient(f"{folder}/chroma").get_or_create_collection("partners")
    pages = SimpleDirectoryReader(str(corpus_path() / "partners")).load_data()
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(pages)
    with RagCache.open(f"{folder}/index", model="bundled") as rag:
        storage = StorageContext.from_defaults(vector_store=RagCacheVectorStore(ChromaVectorStore(collection), rag))
        index = VectorStoreIndex(nodes, storage_context=storage, embed_model=MiniLM())
        llm = RagCacheLLM(rag, max_tokens=64)
        over = RagCacheSynthesizer(llm, streaming=True)
        response = index.as_query_engine(llm, response_synthesizer=over, similarity_top_k=6).query(question)
        assert isinstance(response, StreamingResponse)
        response.print_response_stream()
    print(f"\n{(response.metadata or {})['ragcache']}")
    return response


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
