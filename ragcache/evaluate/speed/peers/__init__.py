"""What people run instead: the same prompts, token by token, through other ways to the first token."""

from ragcache.evaluate.speed.peers.peer import Peer, SameOrder
from ragcache.evaluate.speed.peers.prefix_cache import PrefixCache

__all__ = ["Peer", "PrefixCache", "SameOrder"]
