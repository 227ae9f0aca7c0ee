"""A RAG application in LangChain: langchain_before.py and langchain_after.py differ in what ragcache changes."""

from tempfile import TemporaryDirectory

from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_minilm import MiniLM
from langchain_ragcache import ChatRagCache, RagCacheVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from ragcache import RagCache
from ragcache.bundled import corpus_path, reader_path

MODEL = str(reader_path())  # a folder, or a name on the hub
ASK = "Notes:\n\n{notes}\n\nQuestion: {question}"
PROMPT = ChatPromptTemplate([("system", "You answer questions from the notes you are given."), ("human", ASK)])


def main(folder: str) -> Runnable[str, str]:
    """Read, split and embed files; the chain that answers from them."""
    files = sorted(corpus_path().glob("partners/*.md"))
    pages = [Document(file.read_text(encoding="utf-8"), metadata={"source": file.name}) for file in files]
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0, add_start_index=True)
    rag = RagCache.open(f"{folder}/index", model=MODEL)
    store = RagCacheVectorStore(Chroma("partners", MiniLM(), persist_directory=f"{folder}/chroma"), rag)
    store.add_documents(splitter.split_documents(pages))
    model = ChatRagCache(rag)
    notes = store.as_retriever(search_kwargs={"k": 6}) | (lambda found: "\n\n".join(doc.page_content for doc in found))
    chain: Runnable[str, str] = {"notes": notes, "question": RunnablePassthrough()} | PROMPT | model | StrOutputParser()
    return chain


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(main(folder).invoke("Who is the founder of Grefi Partners?"))
