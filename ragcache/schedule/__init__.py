"""Axis C: in which layers are the selected tokens recomputed?"""

from ragcache.schedule.behind_document import BehindDocument
from ragcache.schedule.cache_fix import CacheFix
from ragcache.schedule.flat import Flat
from ragcache.schedule.progressive_pruning import ProgressivePruning
from ragcache.schedule.protocol import Schedule
from ragcache.schedule.reselect import Reselect

__all__ = ["BehindDocument", "CacheFix", "Flat", "ProgressivePruning", "Reselect", "Schedule"]
