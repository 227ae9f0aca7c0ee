"""A model's cache goes by the name that its own forward has for it."""

from typing import Any

import pytest
from torch import nn
from transformers import DynamicCache

from ragcache.model.architecture import cache_argument


class Today(nn.Module):
    def forward(self, input_ids: Any, cache: Any = None) -> Any:
        return cache


class Before(nn.Module):
    def forward(self, input_ids: Any, past_key_values: Any = None) -> Any:
        return past_key_values


@pytest.mark.parametrize("kind", [Today, Before])
def test_both_names_of_the_cache_are_served(kind: type[nn.Module]) -> None:
    cache = DynamicCache()
    assert kind()(None, **cache_argument(kind(), cache)) is cache
