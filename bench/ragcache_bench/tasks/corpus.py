"""The demo corpus' own questions, with the paragraphs which hold the answer among others."""

import random
from dataclasses import dataclass

from ragcache.bundled import CorpusQuestion, corpus_path, questions
from ragcache.errors import InvalidArgument
from ragcache_bench.tasks.example import Example


@dataclass(frozen=True)
class Corpus:
    """Questions of one kind over paragraphs of the bundled corpus, whose files are the pages.

    Attributes
    ----------
    kind : str
        one-hop, two-hop or section.
    chunks : int
        Paragraphs per question (one-hop, two-hop).
    documents : int
        Whole pages of one kind per question (section), the right one among them.
    header : bool
        Without it (section only) the paragraph that names the page's subject is not in the prompt, as if it had not
        been retrieved; one from the middle of another page stands in its place.

    Raises
    ------
    InvalidArgument
        If the header is left out of another kind.
    """

    kind: str = "one-hop"
    chunks: int = 8
    documents: int = 3
    header: bool = True

    def __post_init__(self) -> None:
        if not self.header and self.kind != "section":
            raise InvalidArgument(f"only section questions have a header to leave out, not {self.kind} questions")

    @property
    def name(self) -> str:
        """The task's."""
        return f"corpus-{self.kind}" + "-bare" * (not self.header)

    @property
    def needs(self) -> bool:
        """Whether the answer is meant to need another chunk."""
        return self.kind == "section"

    def examples(self, n: int, seed: int = 0) -> list[Example]:
        """Return `n` examples, at most as many as there are questions of this kind."""
        asked = [q for q in questions() if q.kind == self.kind]
        rng = random.Random(f"corpus {self.kind} {seed}")
        documents = _paragraphs()
        return [self._example(rng, q, documents) for q in rng.sample(asked, min(n, len(asked)))]

    def _example(self, rng: random.Random, q: CorpusQuestion, documents: dict[str, list[str]]) -> Example:
        chunks = self._pages(rng, q, documents) if self.kind == "section" else self._mixed(rng, q, documents)
        own = set(documents[q.sources[0]]) if self.kind == "section" else set(chunks)
        gold = tuple(i for i, c in enumerate(chunks) if c in own and any(e in c for e in q.evidence))
        gap = gold[-1] - gold[0] if self.kind == "section" else None
        if not self.header:  # by a generator of its own: the rest stays as it is with headers
            chunks[gold[0]] = random.Random(f"{self.name} {q.id}").choice(_elsewhere(chunks, q, documents))
            gold, gap = gold[1:], None
        pages = tuple(tuple(page) for page in documents.values() if not set(chunks).isdisjoint(page))
        return Example(q.id, self.name, tuple(chunks), q.question, q.accepted, gold, gap, pages)

    def _pages(self, rng: random.Random, q: CorpusQuestion, documents: dict[str, list[str]]) -> list[str]:
        folder = q.sources[0].split("/")[0]
        others = [d for d in documents if d.startswith(folder + "/") and d != q.sources[0]]
        order = [q.sources[0], *rng.sample(others, self.documents - 1)]
        rng.shuffle(order)
        return [paragraph for d in order for paragraph in documents[d]]

    def _mixed(self, rng: random.Random, q: CorpusQuestion, documents: dict[str, list[str]]) -> list[str]:
        everything = [p for paragraphs in documents.values() for p in paragraphs]
        gold = [p for d in dict.fromkeys(q.sources) for p in documents[d] if any(e in p for e in q.evidence)]
        others = [p for p in everything if p not in gold]
        chunks = [*gold, *rng.sample(others, self.chunks - len(gold))]
        rng.shuffle(chunks)
        return chunks


def _elsewhere(chunks: list[str], q: CorpusQuestion, documents: dict[str, list[str]]) -> list[str]:
    """Paragraphs that name no subject, of pages of the same kind that are not shown."""
    folder = q.sources[0].split("/")[0]
    pages = (page for path, page in documents.items() if path.startswith(folder + "/"))
    return [paragraph for page in pages if set(chunks).isdisjoint(page) for paragraph in page[1:]]


def _paragraphs() -> dict[str, list[str]]:
    """Documents by path, cut at blank lines; a heading stays with what follows."""
    root = corpus_path()
    out: dict[str, list[str]] = {}
    for file in sorted(p for p in root.rglob("*") if p.suffix in (".md", ".txt")):
        heading, *rest = file.read_text(encoding="utf-8").strip().split("\n\n")
        out[file.relative_to(root).as_posix()] = [f"{heading}\n\n{rest[0]}", *rest[1:]]
    return out
