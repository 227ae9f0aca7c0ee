"""Axis A: in which left context was a chunk's KV made?"""

from ragcache.encode.activations import Activations
from ragcache.encode.alone import Alone
from ragcache.encode.fused import Fused
from ragcache.encode.harvested import Harvested
from ragcache.encode.in_document import InDocument
from ragcache.encode.inplace import InPlace
from ragcache.encode.past_prompt import PastPrompt
from ragcache.encode.prefix_tree import PrefixTree
from ragcache.encode.prefixed import Prefixed
from ragcache.encode.protocol import Encoder, EncodingContext, LeftContext, PromptEncoder, follows_others
from ragcache.encode.sink import Sink

__all__ = [
    "Activations",
    "Alone",
    "Encoder",
    "EncodingContext",
    "Fused",
    "Harvested",
    "InDocument",
    "InPlace",
    "LeftContext",
    "PastPrompt",
    "PrefixTree",
    "Prefixed",
    "PromptEncoder",
    "Sink",
    "follows_others",
]
