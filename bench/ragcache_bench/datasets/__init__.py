"""Public question sets, read from their published files and cut into chunks; nothing of them ships with the package."""

from ragcache_bench.datasets.card import Card, answerable, card
from ragcache_bench.datasets.public import Public, choose, named, parse, unasked
from ragcache_bench.datasets.sample import load
from ragcache_bench.datasets.table import DATASETS, Dataset

__all__ = ["DATASETS", "Card", "Dataset", "Public", "answerable", "card", "choose", "load", "named", "parse", "unasked"]
