"""KV at rest; knows no model."""

from ragcache.store.access import Access, join_access, may_precede, parse_access
from ragcache.store.attachment import Attachment, is_replica, read_attachment, write_attachment
from ragcache.store.blob import Blob, pack, unpack
from ragcache.store.catalog import Catalog
from ragcache.store.codec import CODECS, BFloat16, Codec, Int8, Int8Int4, Raw, find_codec
from ragcache.store.disk import Disk
from ragcache.store.encryption import is_encrypted
from ragcache.store.entries import PART, Entries, EntryRow
from ragcache.store.eviction import Kept, choose_victims, least_often, least_recently, saved_per_byte
from ragcache.store.forgotten import Forgotten
from ragcache.store.key import CODEC, PREFIX, RAW, KeyMaker, bind_secret, kv_key, load_or_create_secret
from ragcache.store.local import LocalStore, hold_turn, is_key, locks_of
from ragcache.store.memory import MemoryTier
from ragcache.store.protocol import BlobStore
from ragcache.store.remote import RemoteStore, check_url
from ragcache.store.schema import CALLED, COLLECTION, ChunkRow, DocumentRow, EncodingRow
from ragcache.store.tiered import TieredStore, open_store
from ragcache.store.uses import Uses

__all__ = [
    "CALLED",
    "CODEC",
    "CODECS",
    "COLLECTION",
    "PART",
    "PREFIX",
    "RAW",
    "Access",
    "Attachment",
    "BFloat16",
    "Blob",
    "BlobStore",
    "Catalog",
    "ChunkRow",
    "Codec",
    "Disk",
    "DocumentRow",
    "EncodingRow",
    "Entries",
    "EntryRow",
    "Forgotten",
    "Int8",
    "Int8Int4",
    "Kept",
    "KeyMaker",
    "LocalStore",
    "MemoryTier",
    "Raw",
    "RemoteStore",
    "TieredStore",
    "Uses",
    "bind_secret",
    "check_url",
    "choose_victims",
    "find_codec",
    "hold_turn",
    "is_encrypted",
    "is_key",
    "is_replica",
    "join_access",
    "kv_key",
    "least_often",
    "least_recently",
    "load_or_create_secret",
    "locks_of",
    "may_precede",
    "open_store",
    "pack",
    "parse_access",
    "read_attachment",
    "saved_per_byte",
    "unpack",
    "write_attachment",
]
