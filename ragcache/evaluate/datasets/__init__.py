"""Public question sets, read from their published files and cut into chunks; nothing of them ships with the package."""

from ragcache.evaluate.datasets.card import Card, answerable, card
from ragcache.evaluate.datasets.public import Public, named, parse
from ragcache.evaluate.datasets.sample import load
from ragcache.evaluate.datasets.table import DATASETS, Dataset

__all__ = ["DATASETS", "Card", "Dataset", "Public", "answerable", "card", "load", "named", "parse"]
