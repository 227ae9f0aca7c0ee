"""The ways that a question can take through each framework, for frameworks.py: a class each, with the same verbs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

from ragcache import Message, RagCache, Sampling
from ragcache.prompt import BEFORE_CHUNKS, BEFORE_QUESTION, SYSTEM
from ragcache.retrieve import Embedder

Told = tuple[str, dict[str, Any]]  # an answer, and what happened


class Paths(ABC):
    """A framework's store, models and ordinary class, over one index."""

    def __init__(self, rag: RagCache, methods: Sequence[str], *, max_tokens: int) -> None:
        self.rag = rag
        self.sampling = Sampling(max_new_tokens=max_tokens)
        self._embedder = Embedder()
        self._made(methods, max_tokens)

    def prompt(self, question: str, found: Sequence[Any]) -> list[Message]:
        """Retrieved pieces pasted into a conversation, in the words that the reader knows."""
        notes = "".join(f"{self.text(piece)}\n\n" for piece in found)
        return [Message("system", SYSTEM), Message("user", f"{BEFORE_CHUNKS}{notes}{BEFORE_QUESTION}{question}")]

    def pasted(self, question: str, found: Sequence[Any], **how: Any) -> Told:
        """The two-line path."""
        return self.answer(self.prompt(question, found), **how)

    def ids(self, prompt: Sequence[Message]) -> list[int]:
        """Token ids that the ordinary class makes of a prompt: the rendered string in one piece."""
        turns = [{"role": message.role, "content": message.text} for message in prompt]
        text = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return list(self._tokenizer(text)["input_ids"])

    def ordinary(self, model: Any, tokenizer: Any) -> None:
        """Take a model for the ordinary class."""
        self._model, self._tokenizer = model, tokenizer
        self._ordinary = cache(self._loaded)

    @abstractmethod
    def _made(self, methods: Sequence[str], max_tokens: int) -> None: ...

    @abstractmethod
    def _loaded(self, max_tokens: int) -> Any:
        """The ordinary class."""

    @abstractmethod
    def piece(self, text: str, source: str = "", start: int = 0) -> Any:
        """A chunk as the framework has it."""

    @abstractmethod
    def text(self, piece: Any) -> str:
        """What it says."""

    @abstractmethod
    def add(self, source: str, chunks: Sequence[tuple[int, str]]) -> None:
        """A document's chunks, into the store."""

    @abstractmethod
    def retrieve(self, question: str, count: int) -> list[Any]:
        """The framework's own retrieval."""

    @abstractmethod
    def exact(self, question: str, found: Sequence[Any], *, method: str) -> Told:
        """The path that hands chunks over as chunks."""

    @abstractmethod
    def answer(self, prompt: Sequence[Message], **how: Any) -> Told:
        """Our class, on a conversation."""

    @abstractmethod
    def stock(self, prompt: Sequence[Message], max_tokens: int) -> str:
        """The ordinary class, on the same."""


class LangChain(Paths):
    """`ChatRagCache` against `ChatHuggingFace`."""

    def _made(self, methods: Sequence[str], max_tokens: int) -> None:
        from langchain_chroma import Chroma
        from langchain_minilm import MiniLM
        from langchain_ragcache import ChatRagCache, RagCacheVectorStore

        where = str(self.rag.index.path / "chroma")
        chroma = Chroma("corpus", MiniLM(), persist_directory=where, collection_metadata={"hnsw:space": "cosine"})
        self._store = RagCacheVectorStore(chroma, self.rag, methods=methods)
        self._ours = ChatRagCache(self.rag, max_tokens=max_tokens)

    def _loaded(self, max_tokens: int) -> Any:
        from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline
        from transformers import pipeline

        how = {"max_new_tokens": max_tokens, "do_sample": False, "return_full_text": False}
        made = pipeline("text-generation", model=self._model, tokenizer=self._tokenizer, **how)
        return ChatHuggingFace(llm=HuggingFacePipeline(pipeline=made), tokenizer=self._tokenizer)

    def piece(self, text: str, source: str = "", start: int = 0) -> Any:
        from langchain_core.documents import Document

        return Document(text, metadata={"source": source, "start_index": start})

    def text(self, piece: Any) -> str:
        return str(piece.page_content)

    def add(self, source: str, chunks: Sequence[tuple[int, str]]) -> None:
        self._store.add_documents([self.piece(text, source, start) for start, text in chunks])

    def retrieve(self, question: str, count: int) -> list[Any]:
        return list(self._store.similarity_search(question, k=count))

    def exact(self, question: str, found: Sequence[Any], *, method: str) -> Told:
        said = self._ours.invoke(question, documents=list(found), method=method)
        return said.text, said.response_metadata["ragcache"]

    def answer(self, prompt: Sequence[Message], **how: Any) -> Told:
        said = self._ours.invoke(self._messages(prompt), **how)
        return said.text, said.response_metadata["ragcache"]

    def stock(self, prompt: Sequence[Message], max_tokens: int) -> str:
        return str(self._ordinary(max_tokens).invoke(self._messages(prompt)).text).strip()

    def _messages(self, prompt: Sequence[Message]) -> list[tuple[str, str]]:
        return [({"user": "human", "assistant": "ai"}.get(one.role, one.role), one.text) for one in prompt]


class LlamaIndex(Paths):
    """`RagCacheLLM` against `HuggingFaceLLM`."""

    def _made(self, methods: Sequence[str], max_tokens: int) -> None:
        import chromadb
        from llama_index.core import VectorStoreIndex
        from llama_index.vector_stores.chroma import ChromaVectorStore
        from llama_index_minilm import MiniLM
        from llama_index_ragcache import RagCacheLLM, RagCacheVectorStore

        client = chromadb.PersistentClient(str(self.rag.index.path / "chroma"))
        corpus = client.get_or_create_collection("corpus", metadata={"hnsw:space": "cosine"})
        store = RagCacheVectorStore(ChromaVectorStore(chroma_collection=corpus), self.rag, methods=methods)
        self._index = VectorStoreIndex.from_vector_store(store, embed_model=MiniLM())
        self._ours = RagCacheLLM(self.rag, max_tokens=max_tokens)

    def _loaded(self, max_tokens: int) -> Any:
        from llama_index.llms.huggingface import HuggingFaceLLM

        return HuggingFaceLLM(
            model=self._model, tokenizer=self._tokenizer, max_new_tokens=max_tokens, is_chat_model=True,
            context_window=self.rag.reader.limit, generate_kwargs={"do_sample": False},
        )  # fmt: skip

    def piece(self, text: str, source: str = "", start: int = 0) -> Any:
        from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

        return TextNode(
            text=text, start_char_idx=start, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
        )

    def text(self, piece: Any) -> str:
        return str(getattr(piece, "node", piece).get_content())

    def add(self, source: str, chunks: Sequence[tuple[int, str]]) -> None:
        self._index.insert_nodes([self.piece(text, source, start) for start, text in chunks])

    def retrieve(self, question: str, count: int) -> list[Any]:
        return list(self._index.as_retriever(similarity_top_k=count).retrieve(question))

    def exact(self, question: str, found: Sequence[Any], *, method: str) -> Told:
        from llama_index_ragcache import RagCacheLLM, RagCacheSynthesizer

        llm = RagCacheLLM(self.rag, method=method, max_tokens=self.sampling.max_new_tokens)
        response = RagCacheSynthesizer(llm).synthesize(question, list(found))
        return str(response), response.metadata["ragcache"]  # type: ignore[index]

    def answer(self, prompt: Sequence[Message], **how: Any) -> Told:
        said = self._ours.chat(self._messages(prompt), **how)
        return said.message.content or "", said.additional_kwargs["ragcache"]

    def stock(self, prompt: Sequence[Message], max_tokens: int) -> str:
        return str(self._ordinary(max_tokens).chat(self._messages(prompt)).message.content or "").strip()

    def _messages(self, prompt: Sequence[Message]) -> list[Any]:
        from llama_index.core.llms import ChatMessage

        return [ChatMessage(role=one.role, content=one.text) for one in prompt]
