"""Ingestion on Ray: workers on any number of machines make KV, and the index's own process enters it.

Ray promises that a chunk is worked on at least once. That it is stored once is the store's doing: a key is made of all
that goes into a KV, and its first writer wins.
"""

from ray_ragcache.ingestion import RayEncoding
from ray_ragcache.pool import RayPool

__all__ = ["RayEncoding", "RayPool"]
