"""What answers and ingestions report: where each chunk's KV came from, what was done, and how long it took."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

CacheState = Literal["hit", "exact", "miss"]

#: Called with a stage's name, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


#: Control characters, and those that turn the direction of a line or end it.
_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


def make_printable(text: str, *, lines: bool = False) -> str:
    """A text that can be shown: what would steer a terminal, or forge a line, is written out as an escape.

    Parameters
    ----------
    text : str
        From a file, a file's name, or a model.
    lines : bool
        Whether it may have several lines, and tabs.
    """
    kept = "\n\t" if lines else ""
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in kept else found[0].encode("unicode_escape").decode(), text
    )


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Report nothing: the `Progress` of a caller that gave none."""


@dataclass(frozen=True)
class ChunkReport:
    """What happened to one chunk of the prompt.

    Attributes
    ----------
    id, source : str
        The chunk's id and the document it came from.
    tokens : int
        Tokens of the chunk, its end included.
    cache : {"hit", "exact", "miss"}
        `exact`: the KV equals what a full prefill would compute here; `hit`: loaded, made in another left context;
        `miss`: not loaded, computed for this answer.
    reason : str
        Why, in words.
    left : str
        The left context in which the loaded KV was made.
    recomputed : int
        Tokens of the chunk that selective recompute refreshed.
    ms : float
        Milliseconds to load and place it.
    """

    id: str
    source: str
    tokens: int
    cache: CacheState
    reason: str
    left: str = ""
    recomputed: int = 0
    ms: float = 0.0


@dataclass(frozen=True)
class Tokens:
    """Token counts of one prompt: `context`, its chunks, and `question`, all else, make up the prompt."""

    context: int
    question: int
    reused: int
    recomputed: int
    charged: int


@dataclass
class Timings:
    """Milliseconds per stage. `first_token` runs from the end of retrieval to the first token's logits.

    Where a retriever was still at work meanwhile it runs from the question, and `retrieve` is 0.

    `match` is spent on finding known chunks in a prompt that somebody else wrote, or an order that the store has a
    prefix of; `total` runs from the beginning of a request, retrieval included, to the end of the answer. `auxiliary`
    is how long another model read the prompt, beside the other stages: what of it had to be waited for is in `select`.
    `harvest` comes behind the answer: KV kept from the prompt.
    """

    retrieve: float = 0.0
    match: float = 0.0
    load: float = 0.0
    place: float = 0.0
    select: float = 0.0
    prefill: float = 0.0
    first_token: float = 0.0
    total: float = 0.0
    auxiliary: float = 0.0
    harvest: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The stock path on the very same token ids, measured in the same call after a warm-up of each."""

    full_prefill_first_token_ms: float
    first_token_ms: float
    same_answer: bool
    full_prefill_answer: str

    @property
    def speedup(self) -> float:
        """Full prefill's time to first token over ours; above 1 is faster."""
        return self.full_prefill_first_token_ms / self.first_token_ms


@dataclass(frozen=True)
class Speculation:
    """What was begun on provisional chunks, where a retriever gave some before its final ones.

    Attributes
    ----------
    lists : int
        Lists of chunks that the retriever gave.
    started, dropped : int
        Prompts that were begun, and those of them that were thrown away.
    kept_early : bool
        Whether the prompt that answers was begun before its list was known to be final.
    wasted_ms, wasted_flops : float
        What was thrown away: milliseconds, and FLOPs over those of a full prefill of the final prompt. A full prefill
        that is broken off counts whole, reuse as far as it came.
    """

    lists: int
    started: int
    dropped: int
    kept_early: bool
    wasted_ms: float
    wasted_flops: float


@dataclass(frozen=True)
class CacheReport:
    """What an answer was made from.

    Attributes
    ----------
    method : str
        The row of the method table.
    recompute : float or None
        The nominal share asked for; None for rows with a fixed cost.
    chunks : tuple of ChunkReport
        In prompt order.
    tokens : Tokens
        Token counts.
    charged : float
        Token-layers of selectable context tokens computed fresh for this answer, every pass included, that which makes
        missing KV too, and each counted once, over (selectable tokens x layers). Link tokens count as computed, not as
        selectable.
    charged_flops : float
        FLOPs of everything before the first token over those of a full prefill of the same prompt, which needs no link
        tokens.
    ms : Timings
        Milliseconds per stage.
    notes : tuple of str
        Degradations worth saying.
    harvest_flops : float
        FLOPs behind the answer, for KV that is kept from its prompt, over those of a full prefill of the prompt.
    speculation : Speculation or None
        What was begun ahead of the final chunks; None where they were known at once.
    """

    method: str
    recompute: float | None
    chunks: tuple[ChunkReport, ...]
    tokens: Tokens
    charged: float
    charged_flops: float
    ms: Timings
    notes: tuple[str, ...] = ()
    harvest_flops: float = 0.0
    speculation: Speculation | None = None

    @property
    def cached(self) -> int:
        """Chunks whose KV was loaded."""
        return sum(chunk.cache != "miss" for chunk in self.chunks)

    def as_dict(self) -> dict[str, Any]:
        """The same for machines: a part of `ragcache ask --json`, and what frameworks hand on."""
        return {
            "method": self.method,
            "recompute": self.recompute,
            "chunks": [asdict(chunk) for chunk in self.chunks],
            "tokens": asdict(self.tokens),
            "charged": self.charged,
            "charged_flops": self.charged_flops,
            "ms": asdict(self.ms),
            "notes": list(self.notes),
            "harvest_flops": self.harvest_flops,
            "speculation": self.speculation and asdict(self.speculation),
        }

    def line(self, comparison: Comparison | None = None) -> str:
        """The one line that `ragcache ask` prints under its answer."""
        share = self.tokens.recomputed / self.tokens.context if self.tokens.context else 0.0
        first = f"first token {self.ms.first_token:,.0f} ms"
        if comparison:
            first = (
                f"first token {comparison.first_token_ms:,.0f} ms (full prefill "
                f"{comparison.full_prefill_first_token_ms:,.0f} ms, {comparison.speedup:.1f}\u00d7)"
            )
        return (
            f"{self.cached}/{len(self.chunks)} chunks cached \u00b7 "
            f"{self.tokens.recomputed:,}/{self.tokens.context:,} tokens recomputed ({share:.1%}) \u00b7 {first}"
        )


@dataclass(frozen=True)
class IngestPlan:
    """What an ingestion would cost, before it starts (`ragcache ingest --dry-run`).

    Attributes
    ----------
    documents, chunks, tokens : int
        That are new or changed, or whose KV is missing.
    bytes_per_token : int
        Of one encoding's KV.
    gigabytes_per_1000_pages : float
        Of all encodings' KV, in 10^9 bytes, a page having 500 tokens.
    bytes : int
        Of the KV to be made.
    seconds : float
        Reading, encoding and embedding on this machine, from what a few pieces took.
    break_even_questions : float
        Questions after which the saved prefill was as much work as the encoding.
    skipped, ignored, errors, notes : tuple of str
        As in `IngestReport`.
    forgotten : tuple of str
        Documents whose files are gone, and which would go too.
    """

    documents: int
    chunks: int
    tokens: int
    bytes_per_token: int
    gigabytes_per_1000_pages: float
    bytes: int
    seconds: float
    break_even_questions: float
    skipped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every file under the paths would be in the index, but for those that patterns leave out."""
        return not (self.skipped or self.errors)


@dataclass(frozen=True)
class IngestReport:
    """What an ingestion did.

    Attributes
    ----------
    added, changed, removed, unchanged : int
        Documents.
    chunks : int
        Chunks of the whole index.
    encoded : Mapping
        How many chunks were prefilled, by recipe.
    bytes : int
        The index's KV on disk.
    seconds : float
        What it took.
    skipped : tuple of str
        Files under the paths of a type that no reader takes.
    ignored : tuple of str
        What patterns left out: files, and folders with a slash at their end.
    errors : sequence of str
        A sentence for each entry under the paths that could not be read.
    notes : tuple of str
        What was not done as asked, such as chunks that a limit keeps shorter.
    forgotten : tuple of str
        Documents that were removed, since their files are gone.
    outdated : Mapping
        How many chunks were fused with others than those most similar to them now, by recipe; `RagCache.refresh` makes
        their KV anew.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    chunks: int
    encoded: Mapping[str, int]
    bytes: int
    seconds: float
    skipped: tuple[str, ...] = ()
    errors: Sequence[str] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    outdated: Mapping[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every file under the paths is in the index, but for those that patterns leave out."""
        return not (self.skipped or self.errors)
