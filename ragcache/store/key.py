"""What identifies a KV: a keyed digest over everything that went into it."""

import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import numpy as np

from ragcache.errors import IndexFormat, UnusableIndex
from ragcache.store.catalog import Catalog
from ragcache.store.encryption import OVERHEAD, Encryption, SealBroken
from ragcache.store.publish import publish

FORMAT = 1
"""Version of the blob format; part of every key, so that a new format never meets old files."""

PREFIX = "prefix"
"""The recipe of the system prefix's KV, which belongs to no document."""

CODEC = "codec"
"""Setting: how an index's KV is written down."""

RAW = "raw"
"""The codec of an index that says nothing else."""

_SECRET_BYTES = 32
_DIGEST = "secret_digest"  # setting: by which another secret is told from the index's own


def load_or_create_secret(path: str | Path, encryption: Encryption | None = None) -> bytes:
    """Read a collection's secret, making one the first time.

    Without the secret nobody can tell from a key, or from a hit, which text was stored; and two
    collections never share a KV.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist. Created readable by its owner only.
    encryption : Encryption, optional
        Seals it.

    Returns
    -------
    bytes
        32 random bytes, the same for every caller.

    Raises
    ------
    IndexFormat
        The file holds something else.
    UnusableIndex
        The file cannot be read, or is absent and cannot be written.
    """
    path = Path(path)
    try:
        if not path.exists():
            secret = secrets.token_bytes(_SECRET_BYTES)
            parts = [secret] if encryption is None else list(encryption.seal(path.name, [secret]))
            publish(path, parts, mode=0o600)
        secret = path.read_bytes() if encryption is None else _unseal(encryption, path)
    except OSError as error:
        raise UnusableIndex(f"the secret {path} cannot be opened ({error.strerror}).") from error
    if len(secret) != _SECRET_BYTES:
        raise IndexFormat(
            f"the secret {path} has {len(secret)} bytes instead of {_SECRET_BYTES}; "
            "restore it from a backup, or delete the index and ingest again."
        )
    return secret


def _unseal(encryption: Encryption, path: Path) -> bytes:
    sealed = path.read_bytes()
    secret = bytearray(max(len(sealed) - OVERHEAD, 0))
    try:
        encryption.open(path.name, memoryview(sealed), memoryview(secret))
    except SealBroken as error:
        raise IndexFormat(
            f"the secret {path} cannot be decrypted: {error}; restore it from a backup, or delete the index and ingest "
            "again."
        ) from error
    return bytes(secret)


def bind_secret(catalog: Catalog, path: Path) -> bytes:
    """The secret of an index, which never changes: all of its KV is named by it.

    Parameters
    ----------
    catalog : Catalog
        Of the index.
    path : Path
        The index's folder.

    Raises
    ------
    IndexFormat
        If the secret is gone, or another one.
    UnusableIndex
        As `load_or_create_secret`.
    """
    file, known = path / "secret", catalog.setting(_DIGEST)
    made = known is not None or bool(catalog.recipes())
    secret = b"" if made and not file.exists() else load_or_create_secret(file, catalog.encryption)
    digest = sha256(secret).hexdigest()
    if not secret or known not in (None, digest):
        raise IndexFormat(
            f"the secret {file} is {'another one' if secret else 'gone'}, so none of the KV of the index can be found; "
            "restore it from a backup, or delete the index and ingest again."
        )
    if known is None and catalog.writable:
        catalog.set_setting(_DIGEST, digest)
    return secret


def kv_key(
    secret: bytes,
    *,
    fingerprint: str,
    recipe: str,
    left: Sequence[str],
    token_ids: Sequence[int],
    codec: str = RAW,
) -> str:
    """Name a KV by everything that went into it.

    Parameters
    ----------
    secret : bytes
        The collection's secret.
    fingerprint : str
        Weights, config, tokenizer, dtype and rope of the model.
    recipe : str
        The encoder with its fields.
    left : sequence of str
        Keys of the left context that the KV was made in, in order.
    token_ids : sequence of int
        The chunk itself.
    codec : str
        How it is written down, so that no KV is taken for one of another precision.

    Returns
    -------
    str
        HMAC-SHA256 [1]_ in 64 hexadecimal digits, the same in every process and on every machine.

    References
    ----------
    .. [1] Krawczyk, Bellare, Canetti, RFC 2104.
    """
    ids = np.asarray(token_ids, dtype="<i8").tobytes()
    form = str(FORMAT) if codec == RAW else f"{FORMAT} {codec}"  # raw KV keeps the keys that it always had
    parts = [form.encode(), fingerprint.encode(), recipe.encode(), ids, *map(str.encode, left)]
    return hmac.new(secret, b"".join(_framed(parts)), sha256).hexdigest()


@dataclass(frozen=True)
class KeyMaker:
    """Names the KV of one index.

    Attributes
    ----------
    secret : bytes
        The index's own.
    fingerprint : str
        Of the model that makes its KV.
    codec : str
        How its KV is written down.
    """

    secret: bytes
    fingerprint: str
    codec: str = RAW

    @classmethod
    def of(cls, catalog: Catalog, path: Path) -> Self:
        """That of an index whose model need not be loaded.

        Raises
        ------
        IndexFormat, UnusableIndex
            As `bind_secret`.
        """
        codec = catalog.setting(CODEC, RAW)
        return cls(bind_secret(catalog, path), catalog.setting("fingerprint", ""), codec)

    def make(self, recipe: str, left: Sequence[str], token_ids: Sequence[int]) -> str:
        """The key of what a recipe makes of tokens behind a left context."""
        return kv_key(
            self.secret, fingerprint=self.fingerprint, recipe=recipe, left=left, token_ids=token_ids, codec=self.codec
        )


def _framed(parts: Iterable[bytes]) -> Iterable[bytes]:
    # Each part behind its length: no two lists of parts give the same bytes.
    for part in parts:
        yield len(part).to_bytes(8, "little")
        yield part
