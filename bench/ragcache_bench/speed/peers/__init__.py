"""What people run instead: the same prompts, token by token, through other ways to the first token."""

from ragcache_bench.speed.peers.peer import MakePeers, Peer, SameOrder
from ragcache_bench.speed.peers.prefix_cache import PrefixCache

__all__ = ["MakePeers", "Peer", "PrefixCache", "SameOrder"]
