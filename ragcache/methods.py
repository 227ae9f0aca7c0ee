"""The table of the literature: a method is one choice on each axis.

A row's `recompute` is its default share of selectable tokens; None marks a fixed cost.
A user's own method is `dataclasses.replace(METHODS["fusionrag"], select=…)`; other packages add rows through the entry
point group `ragcache.methods`, each entry a `Method`.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from ragcache.attend import Scaled, TopChunks
from ragcache.encode import Activations, Alone, Fused, Harvested, InDocument, InPlace, Prefixed, PrefixTree, Sink
from ragcache.errors import UnknownMethod
from ragcache.layout import BestLast, Linked, LongestPath, Overlapped
from ragcache.method import Method
from ragcache.schedule import BehindDocument, CacheFix, ProgressivePruning, Reselect
from ragcache.select import (
    Auxiliary,
    FirstTokens,
    Grouped,
    InterAttention,
    KeyDeviation,
    QuestionAttention,
    RandomTokens,
)

DEFAULT_METHOD = "auto"

_EVERY_LAYER = QuestionAttention(layers="all", reduce="mean")
_CRITICAL = QuestionAttention(layers=(13 / 32, 14 / 32, 17 / 32), reduce="max")
_INFOFLOW = QuestionAttention(layers=(22 / 32, 23 / 32, 24 / 32, 25 / 32), reduce="norm")

_ROWS = (
    Method(
        "full",
        None,
        about="full prefill with stock attention: the reference",
        when="as the reference, or where prompts are short",
        when_not="where the time to the first token matters and chunks come back",
    ),
    Method(
        "prefix",
        InPlace(),
        paper="2312.07104",
        about="exact prefix caching: system prefix and first chunk",
        when="answers must equal full prefill, and the same chunk often comes first",
        when_not="chunks come in many orders: little is reused",
    ),
    Method(
        "ragcache",
        PrefixTree(),
        layout=LongestPath(),
        paper="2404.12457",
        about="exact prefixes of any length, kept from answered prompts in a tree",
        when="answers must equal full prefill, and the same chunks come in the same order again and again",
        when_not="many chunks come in many orders: prompts rarely begin alike",
    ),
    Method(
        "naive",
        Alone(),
        paper="2311.04934",
        about="stitch, re-rotate, recompute nothing",
        when="as the lower end of every comparison, or for facts that stand in one chunk",
        when_not="the answer needs two chunks, or a chunk needs its header",
    ),
    Method(
        "random",
        Alone(),
        RandomTokens(),
        0.15,
        about="random tokens: the control at any budget",
        when="as the control that every selector must beat at its own budget",
        when_not="for answers anybody relies on",
    ),
    Method(
        "epic",
        Alone(),
        FirstTokens(),
        0.15,
        paper="2410.15332",
        about="the first tokens of every chunk",
        when="scoring passes are too dear, and chunks are short",
        when_not="the budget is small and what matters stands far from the chunks' first tokens",
        tuned=("recompute",),
    ),
    Method(
        "link0",
        Sink(tokens=4),
        paper="2410.15332",
        about="sinks removed by throw-away tokens",
        when="nothing may be computed beyond the question",
        when_not="answers join several chunks",
    ),
    Method(
        "ape",
        Prefixed(),
        attend=Scaled(temperature=0.9, scale=0.9),
        layout=Overlapped(),
        paper="2502.05431",
        about="chunks in parallel, their attention sharpened and scaled",
        when="many chunks that can be read side by side, and questions to tune on",
        when_not="the order of chunks matters, or nobody tunes temperature and scale",
    ),
    Method(
        "sel",
        Prefixed(),
        attend=TopChunks(chunks=4),
        paper="2412.16545",
        about="chunks in parallel, the question sees only the best",
        when="one or few of many chunks hold the answer",
        when_not="an answer takes more chunks than are left",
        tuned=("attend.by.layers", "attend.by.reduce"),
    ),
    Method(
        "cacheblend",
        Alone(),
        KeyDeviation(layer=1),
        0.15,
        paper="2405.16444",
        about="the keys that deviate most",
        when="the question is long or unknown when tokens are chosen",
        when_not="the model is shallow, since layers 0 and 1 are computed for every token",
    ),
    Method(
        "cacheblend-v",
        Alone(),
        KeyDeviation(layer=1, of="value"),
        0.15,
        paper="2405.16444",
        about="the values that deviate most, as the released code has it",
        when="to compare with the released code",
        when_not="as a default: try cacheblend beside it",
    ),
    Method(
        "cacheblend-gradual",
        Alone(),
        KeyDeviation(layer=1),
        0.15,
        schedule=ProgressivePruning(by="deviation"),
        paper="2405.16444",
        about="ranked again in every layer, ever fewer, as the paper has it",
        when="to compare with the paper's own filtering",
        when_not="the model is shallow, for there is little room to narrow",
    ),
    Method(
        "droidspeak",
        Activations(Alone(), layer=0.5),
        KeyDeviation(layer=1),
        0.15,
        schedule=Reselect(layer=0.5),
        paper="2411.02820",
        about="the keys that deviate most, chosen again at a middle layer",
        when="to study choosing again at depth",
        when_not="for answers: stored states know no other chunk, and storage grows by them",
        tuned=("encode.layer", "schedule.layer"),
    ),
    Method(
        "psr",
        Sink(tokens=4),
        KeyDeviation(layer=1),
        0.15,
        attend=Scaled(temperature=0.9, scale=0.9),
        paper="2603.20218",
        about="prefix, scale, recompute: link0, ape and cacheblend together",
        when="nothing can be encoded with neighbours, and p, T and S can be tuned together",
        when_not="without questions to tune prefix, temperature and scale on at once, or with shallow models",
        tuned=("encode.tokens", "attend.temperature", "attend.scale"),
    ),
    Method(
        "cacheclip",
        Prefixed(),
        Grouped(Auxiliary(), window=8, stride=4),
        0.20,
        paper="2510.10129",
        about="what a small model attends to, in groups",
        when="a small model of the primary's family is named with --auxiliary, best on an idle CPU",
        when_not="primary and auxiliary are of like size: the auxiliary reads the whole prompt",
    ),
    Method(
        "prophetkv",
        Alone(),
        _EVERY_LAYER,
        0.20,
        paper="2602.02579",
        about="what the question attends to, over all layers",
        when="the question says what it is after, and ingestion must stay cheap",
        when_not="long questions over short contexts: the question runs through every layer twice",
    ),
    Method(
        "qcfuse",
        Alone(),
        _CRITICAL,
        0.50,
        paper="2606.05875",
        about="what the question attends to in critical middle layers, over all keys instead of anchors",
        when="the model is deep and its critical layers are known: the question stops half-way when it chooses",
        when_not="another model's critical layers are known: those named are Llama-3.1-8B's, as fractions of its depth",
    ),
    Method(
        "infoflow",
        Alone(),
        _INFOFLOW,
        0.15,
        layout=BestLast(_INFOFLOW),
        paper="2603.05353",
        about="what the question attends to in middle layers, the best chunk last",
        when="independent chunks and deep models with known retrieval layers",
        when_not="chunks are steps, events or corrections of one another; try infoflow-in-order beside it",
    ),
    Method(
        "infoflow-in-order",
        Alone(),
        _INFOFLOW,
        0.15,
        paper="2603.05353",
        about="infoflow's choice alone: chunks stay in the order given",
        when="to tell what infoflow's choice does from what its reordering does, or where order means something",
        when_not="the question's chunk is far from the question, and chunks may change places",
    ),
    Method(
        "fusionrag",
        Fused(neighbours=10),
        QuestionAttention(layers="last", reduce="sum"),
        0.15,
        paper="2601.12904",
        about="chunks fused with their neighbours, then what the question attends to",
        when="chunks that are retrieved together are alike, and ingestion may cost two passes",
        when_not="documents change often, or neighbours in the index are rarely retrieved together",
    ),
    Method(
        "cachecraft",
        Harvested(),
        InterAttention(),
        0.30,
        schedule=CacheFix(),
        paper="2502.15734",
        about="chunks as they stood in earlier prompts, fixed as far as their context has changed",
        when="the same chunks are retrieved again and again, in like company, and ingestion may cost nothing",
        when_not="questions rarely share chunks: a first prompt is a full prefill, and is read once more to be kept",
        tuned=("recompute",),
    ),
    Method(
        "turborag",
        Alone(),
        _EVERY_LAYER,
        0.0,
        paper="2410.07590",
        about="chunks alone, read by a model tuned to read them so; nothing recomputed unless a share is asked for",
        when="the model is yours to tune, and nothing may be computed beyond the question",
        when_not="weights must stay as they are, or little can be tuned on: untuned, it is naive",
        finetuned="turborag",
    ),
    Method(
        "turborag-composite",
        Alone(),
        _EVERY_LAYER,
        0.0,
        layout=Overlapped(),
        paper="2410.07590",
        about="every chunk begins where the first one does: the other positions of turborag",
        when="to compare with turborag, or to keep every chunk near the question: no rotation, and few positions",
        when_not="the order of chunks matters; the paper prefers turborag's reordered positions",
        finetuned="turborag-composite",
    ),
    Method(
        "block-attention",
        Alone(),
        _EVERY_LAYER,
        0.0,
        paper="2409.15355",
        about="chunks alone, read by a model that was tuned under full attention and without in turn",
        when="the same tuned model is to answer in full too",
        when_not="weights must stay as they are, or little can be tuned on: untuned, it is naive",
        finetuned="block-attention",
    ),
    Method(
        "kvlink",
        Alone(),
        _EVERY_LAYER,
        0.0,
        layout=Linked(),
        paper="2502.16002",
        about="chunks alone, with link tokens behind each that the model was tuned with",
        when="the model is yours to tune, and what chunks say together matters",
        when_not="prompts have more chunks than the model was tuned with",
        finetuned="kvlink",
    ),
    Method(
        "psr-fused",
        Fused(neighbours=10),
        QuestionAttention(layers="last", reduce="sum"),
        0.15,
        attend=Scaled(temperature=0.95, scale=1.0),
        about="fusionrag with scaled attention (ours)",
        when="as fusionrag, with questions to tune temperature and scale on",
        when_not="settings cannot be tuned: fusionrag is the safer one",
    ),
    Method(
        "in-document",
        InDocument(),
        _EVERY_LAYER,
        0.15,
        about="chunks sliced from their prefilled document, then what the question attends to (ours)",
        when="chunks lean on headers, names or definitions elsewhere in their document",
        when_not="documents are collections of unrelated text, or what stands before a chunk misleads",
    ),
    Method(
        "behind-document",
        InDocument(),
        _EVERY_LAYER,
        0.15,
        schedule=BehindDocument(),
        about="in-document, and recomputed tokens keep their document beside the prompt (ours)",
        when="some tokens are to be recomputed, and chunks lean on their document",
        when_not="documents may mislead, or much of them must be read from a slow disk",
    ),
    Method(
        "auto",
        InDocument(),
        _EVERY_LAYER,
        0.05,
        about="the default: in-document at a small share (ours)",
        when="nothing else is known; recompute more where documents mislead, nothing where headings are not retrieved",
        when_not="chunks come without documents: try fusionrag",
    ),
)

#: The table: name to row.
METHODS: Mapping[str, Method] = {row.name: row for row in _ROWS}


@cache
def _plugins() -> dict[str, Method]:
    loaded = [entry.load() for entry in entry_points(group="ragcache.methods")]
    return {row.name: row for row in loaded if isinstance(row, Method)}


def list_methods() -> dict[str, Method]:
    """Every row, those of other packages included."""
    return {**_plugins(), **METHODS}


def find_method(name: str | Method) -> Method:
    """The row of that name.

    Raises
    ------
    UnknownMethod
        If there is none; the message lists those that are.
    """
    if isinstance(name, Method):
        return name
    rows = list_methods()
    if name not in rows:
        raise UnknownMethod(f"no method is called {name!r}; `ragcache methods` lists {', '.join(rows)}")
    return rows[name]
