"""Axis E: in which order, and at which positions, do the chunks stand?"""

from ragcache.layout.best_last import BestLast
from ragcache.layout.linked import Linked
from ragcache.layout.longest_path import LongestPath
from ragcache.layout.overlapped import Overlapped
from ragcache.layout.protocol import Layout, Look
from ragcache.layout.retrieved import Retrieved

__all__ = ["BestLast", "Layout", "Linked", "LongestPath", "Look", "Overlapped", "Retrieved"]
