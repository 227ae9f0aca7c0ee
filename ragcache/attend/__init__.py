"""Axis D: how do rows attend to reused keys?"""

from ragcache.attend.protocol import ScoreMod
from ragcache.attend.scaled import Scaled
from ragcache.attend.top_chunks import TopChunks

__all__ = ["Scaled", "ScoreMod", "TopChunks"]
