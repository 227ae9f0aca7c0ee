"""Axis B: which of the reused tokens are recomputed?"""

from ragcache.select.auxiliary import Auxiliary
from ragcache.select.everything import Everything
from ragcache.select.first_tokens import FirstTokens
from ragcache.select.grouped import Grouped
from ragcache.select.inter_attention import InterAttention
from ragcache.select.key_deviation import KeyDeviation
from ragcache.select.product import Product
from ragcache.select.protocol import Selector
from ragcache.select.question_attention import QuestionAttention
from ragcache.select.random_tokens import RandomTokens
from ragcache.select.union import Union
from ragcache.select.value_shift import ValueShift

__all__ = [
    "Auxiliary",
    "Everything",
    "FirstTokens",
    "Grouped",
    "InterAttention",
    "KeyDeviation",
    "Product",
    "QuestionAttention",
    "RandomTokens",
    "Selector",
    "Union",
    "ValueShift",
]
