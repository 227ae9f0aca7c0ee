"""What an ingestion would make, added up and priced before it starts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

import torch

from ragcache.encode import Encoder, PromptEncoder
from ragcache.index.estimate import estimate
from ragcache.index.index import Index
from ragcache.index.settings import bytes_of_form, form_of
from ragcache.model.cost import gigabytes_per_1000_pages
from ragcache.report import IngestPlan
from ragcache.retrieve import Vectors
from ragcache.retrieve.given import AnyEmbedder
from ragcache.store import DocumentRow

_SAMPLED = 64  # texts that are encoded and embedded to see how long that takes
_EMBEDDED = 32


class Sample:
    """A few of many texts, each as likely as any other; the same ones every time."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._random = Random(0)
        self._seen = 0

    def add(self, text: str) -> None:
        """Take a text into account."""
        self._seen += 1
        place = len(self.texts) if self._seen <= _SAMPLED else self._random.randrange(self._seen)
        if place < _SAMPLED:
            self.texts[place : place + 1] = [text]


@dataclass(eq=False)
class Pricing:
    """Documents to come are added, then everything is priced: they, and what the index lacks of those it has.

    Attributes
    ----------
    index : Index
        Where they would go; it is left as it is.
    vectors : Vectors
        Where their embeddings would go.
    embedder : AnyEmbedder
        Would make those.
    """

    index: Index
    vectors: Vectors
    embedder: AnyEmbedder
    _new: list[list[int]] = field(default_factory=list)  # tokens of each chunk of each document
    _replaced: set[str] = field(default_factory=set)
    _sample: Sample = field(default_factory=Sample)

    def add(self, texts: Sequence[str], replaced: DocumentRow | None) -> None:
        """Add a document's chunks, which would come in the place of what the index has."""
        self._new.append([len(self.index.template.chunk(text, "").token_ids) for text in texts])
        self._replaced |= {replaced.id} if replaced else set()
        for text in texts:
            self._sample.add(text)

    def plan(self, encoders: Sequence[Encoder], top_k: int, progress: Callable[[str, int, int], None]) -> IngestPlan:
        """Encodings of all that was added, or is lacking; what `encoders` build on stands among them."""
        encoders = [one for one in encoders if not isinstance(one, PromptEncoder)]  # of which ingestion makes nothing
        todo = [(encoder, [*self._new, *self._lacking(encoder)]) for encoder in encoders]
        most = max([self._new, *(own for _, own in todo)], key=lambda own: sum(map(sum, own)))
        chunks, tokens = sum(map(len, most)), sum(map(sum, most))
        ids = [token for text in self._sample.texts for token in self.index.template.chunk(text, "").token_ids]
        prefix, reader = len(self.index.prefix_segment), self.index.reader
        cost = estimate(reader, prefix, todo, ids, lambda done, total: progress("measure", done, total))
        context = torch.arange(prefix + round(tokens / max(chunks, 1) * top_k))
        question = reader.dims.forward(context, range(reader.layers), logits=True)
        written = self._bytes_per_token(max(round(tokens / max(chunks, 1)), 1))
        return IngestPlan(
            documents=len(most),
            chunks=chunks,
            tokens=tokens,
            bytes_per_token=written,
            gigabytes_per_1000_pages=len(encoders) * gigabytes_per_1000_pages(written),
            bytes=written * sum(sum(map(sum, own)) for _, own in todo),
            seconds=cost.seconds + self._embedding(),
            break_even_questions=cost.flops / question,
        )

    def _bytes_per_token(self, tokens: int) -> int:
        """Bytes that a token's KV takes as the index writes it, in a chunk of so many tokens."""
        kv = self.index.reader.encode(self.index.template.chunk("a", "").token_ids[:1])
        return round((bytes_of_form(form_of(kv.layers), self.index.codec, tokens) + kv.state_nbytes) / tokens)

    def _lacking(self, encoder: Encoder) -> Iterator[list[int]]:
        """Tokens of the chunks, document by document, that the index has without an encoding of theirs."""
        catalog = self.index.catalog
        for document in catalog.lacking(encoder.recipe):
            if document not in self._replaced:
                rows = catalog.missing(encoder.recipe, document)
                for row in rows:
                    self._sample.add(row.text)
                yield [len(row) for row in rows]

    def _embedding(self) -> float:
        """Seconds that the vectors take which are not there yet."""
        kept = [chunk for chunk, document in self.index.catalog.places() if document not in self._replaced]
        count = sum(map(len, self._new)) + len(set(kept) - set(self.vectors.ids()))
        texts = self._sample.texts[:_EMBEDDED]
        if not (count and texts):
            return 0.0
        self.embedder.embed(texts[:1])  # a warm-up
        began = perf_counter()
        self.embedder.embed(texts)
        return (perf_counter() - began) * count / len(texts)
