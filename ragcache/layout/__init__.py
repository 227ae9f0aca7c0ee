"""Axis E: in which order, and at which positions, do the chunks stand?"""

from ragcache.layout.protocol import Layout
from ragcache.layout.retrieved import Retrieved

__all__ = ["Layout", "Retrieved"]
