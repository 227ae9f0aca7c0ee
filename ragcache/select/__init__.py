"""Axis B: which of the reused tokens are recomputed?"""

from ragcache.select.everything import Everything
from ragcache.select.first_tokens import FirstTokens
from ragcache.select.key_deviation import KeyDeviation
from ragcache.select.protocol import Selector
from ragcache.select.question_attention import QuestionAttention
from ragcache.select.random_tokens import RandomTokens

__all__ = ["Everything", "FirstTokens", "KeyDeviation", "QuestionAttention", "RandomTokens", "Selector"]
