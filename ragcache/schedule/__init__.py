"""Axis C: in which layers are the selected tokens recomputed?"""

from ragcache.schedule.flat import Flat
from ragcache.schedule.protocol import Schedule

__all__ = ["Flat", "Schedule"]
