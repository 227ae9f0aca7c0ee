"""Encryption at rest: one key of 32 bytes, named in the environment, and what it does to the files of an index.

KV files and the secret are sealed whole by AES-256-GCM, each with its name as associated data, so that none passes for
another. SQLCipher encrypts the catalogue page by page, and with it its log and its index of words. A file beside them
says that the folder is encrypted, and by which key. Where neither it nor a key is there, no cipher is imported.
"""

import hmac
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ragcache.errors import (
    IndexFormat,
    InvalidArgument,
    KeyMismatch,
    MissingExtra,
    StorageFull,
    ingest,
    install,
    remedy,
)
from ragcache.store.publish import publish

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

KEY, KEY_FILE = "RAGCACHE_KEY", "RAGCACHE_KEY_FILE"
"""Environment variables: the key itself, or the file that it stands in."""

MARK = "encryption.json"
"""The file that says that a folder is encrypted; it holds no secret."""

_OPENING = b"RAGCACHE-SEALED1"
_NONCE_BYTES, _TAG_BYTES, _KEY_BYTES, _SALT_BYTES = 12, 16, 32, 16
_AT_ONCE = 1 << 26  # bytes; a cipher takes less than 2 GiB in a call

OVERHEAD = len(_OPENING) + _NONCE_BYTES + _TAG_BYTES
"""Bytes that a sealed file has more than what is in it."""


class SealBroken(ValueError):
    """Sealed bytes that were changed, or were sealed by another key or under another name."""


class Encryption:
    """What seals the files of one folder.

    Parameters
    ----------
    key : bytes
        32 bytes.
    salt : bytes
        The folder's own, so that no two folders use a key in common.

    Raises
    ------
    MissingExtra
        If the ciphers are not installed.
    """

    def __init__(self, key: bytes, salt: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ModuleNotFoundError as error:
            raise _missing(error) from error

        def derive(use: bytes) -> bytes:
            return HKDF(SHA256(), _KEY_BYTES, salt, b"ragcache " + use).derive(key)

        self.check = derive(b"check").hex()
        self._catalog_key = derive(b"catalogue").hex()
        self._file_key = derive(b"files")

    def seal(self, name: str, parts: Sequence[bytes | memoryview]) -> Iterator[bytes]:
        """What a file of that name is to hold, in parts; its nonce is drawn anew each time."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        encryptor = self._cipher(nonce).encryptor()
        encryptor.authenticate_additional_data(name.encode())
        yield _OPENING + nonce
        for part in parts:
            view = memoryview(part).cast("B")
            for first in range(0, len(view), _AT_ONCE):
                yield encryptor.update(view[first : first + _AT_ONCE])
        yield encryptor.finalize() + encryptor.tag

    def open(self, name: str, sealed: memoryview, into: memoryview) -> None:
        """Decrypt a file; what it wrote before it raises is of no use.

        Parameters
        ----------
        name : str
            The file's, as it was sealed.
        sealed : memoryview
            All of its bytes.
        into : memoryview
            Room for `OVERHEAD` bytes fewer.

        Raises
        ------
        SealBroken
            If it is not what was sealed under that name.
        """
        from cryptography.exceptions import InvalidTag

        if len(sealed) < OVERHEAD or bytes(sealed[: len(_OPENING)]) != _OPENING:
            raise SealBroken("it is not encrypted as the others are")
        body = sealed[len(_OPENING) + _NONCE_BYTES : -_TAG_BYTES]
        nonce = bytes(sealed[len(_OPENING) : len(_OPENING) + _NONCE_BYTES])
        decryptor = self._cipher(nonce, bytes(sealed[-_TAG_BYTES:])).decryptor()
        decryptor.authenticate_additional_data(name.encode())
        for first in range(0, len(body), _AT_ONCE):
            decryptor.update_into(body[first : first + _AT_ONCE], into[first : first + _AT_ONCE])
        try:
            decryptor.finalize()
        except InvalidTag:
            raise SealBroken("it was changed, or was encrypted under another name or key") from None

    def _cipher(self, nonce: bytes, tag: bytes | None = None) -> "Cipher[modes.GCM]":
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(self._file_key), modes.GCM(nonce, tag))

    def unlock(self, connection: Any) -> None:
        """Tell a connection of SQLCipher's, which was just made, the key."""
        connection.execute("PRAGMA cipher_log_level = NONE")  # or it writes to the terminal what we say in our words
        connection.execute(f"PRAGMA key = \"x'{self._catalog_key}'\"")


def sqlcipher() -> ModuleType:
    """SQLite with encryption, used as Python's `sqlite3` is.

    Raises
    ------
    MissingExtra
        If it is not installed.
    """
    try:
        from sqlcipher3 import dbapi2
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return dbapi2  # type: ignore[no-any-return]


def is_encrypted(folder: Path) -> bool:
    """Whether a folder says that it is encrypted."""
    return (folder / MARK).exists()


def encryption_of(folder: Path) -> Encryption | None:
    """What seals the files of a folder; None where it is not encrypted.

    Raises
    ------
    KeyMismatch
        If no key is named, or another than the folder's.
    InvalidArgument
        If what is named is no key.
    IndexFormat
        If the folder does not say by which key.
    MissingExtra
        If the ciphers are not installed.
    """
    if not is_encrypted(folder):
        return None
    salt, check = _read_mark(folder / MARK)
    found = find_key()
    if found is None:
        raise KeyMismatch(
            f"the index {folder} is encrypted, and neither {KEY_FILE} nor {KEY} is set; set one of them to the index's "
            "key and repeat the command."
        )
    encryption = Encryption(found, salt)
    if not hmac.compare_digest(encryption.check, check):
        raise KeyMismatch(
            f"the index {folder} is encrypted by another key than the one that {_name_of_key()} names; set it to the "
            "index's own key and repeat the command."
        )
    return encryption


def bind_encryption(folder: Path, *, new: bool) -> Encryption | None:
    """The same for a folder whose catalogue is about to be opened: a new one is encrypted where a key is named.

    Parameters
    ----------
    folder : Path
        The index's, which must exist.
    new : bool
        Whether it has no catalogue yet.

    Raises
    ------
    KeyMismatch
        Also if a key is named, and the index is there and not encrypted.
    InvalidArgument, IndexFormat, MissingExtra, StorageFull
        As `encryption_of`; the disk refused.
    """
    if not is_encrypted(folder) and (key := find_key()) is not None:
        if not new:
            raise KeyMismatch(
                f"the index {folder} is not encrypted, but {_name_of_key()} names a key; unset it, or run "
                f"`{ingest('NEW', paths='PATH…')}` for an index that is."
            )
        _create_mark(folder, key)
    return encryption_of(folder)


def find_key() -> bytes | None:
    """The key that the environment names, if it names one.

    Raises
    ------
    InvalidArgument
        If it is no key, cannot be read, or there are two.
    """
    file, text = os.environ.get(KEY_FILE, ""), os.environ.get(KEY, "")
    if file and text:
        raise InvalidArgument(f"both {KEY_FILE} and {KEY} are set; unset one of them.")
    if file:
        try:
            text = Path(file).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(
                f"the key file {file} cannot be read ({error}); make one with `openssl rand -hex 32 > {file}`."
            ) from error
    if not text:
        return None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidArgument(
            f"{_name_of_key()} must name a key of {2 * _KEY_BYTES} hexadecimal digits, and what it names has "
            f"{len(text.strip())} characters; make one with `openssl rand -hex 32`."
        )
    return key


def _name_of_key() -> str:
    return KEY_FILE if os.environ.get(KEY_FILE) else KEY


def _create_mark(folder: Path, key: bytes) -> None:
    """Say that a folder is encrypted; of several who do so at once the first one decides by which key."""
    sqlcipher()  # before anything is written
    salt = secrets.token_bytes(_SALT_BYTES)
    about = {"cipher": "AES-256-GCM, SQLCipher 4", "salt": salt.hex(), "check": Encryption(key, salt).check}
    try:
        publish(folder / MARK, [json.dumps(about).encode()])
    except OSError as error:
        raise StorageFull(f"the disk refused a write to {folder} ({error.strerror}); {remedy(error)}.") from error


def _read_mark(path: Path) -> tuple[bytes, str]:
    try:
        about = json.loads(path.read_bytes())
        return bytes.fromhex(about["salt"]), str(about["check"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexFormat(
            f"{path} cannot be read ({error}), and without it the index cannot be decrypted; restore it from a backup, "
            "or delete the index and ingest again."
        ) from error


def _missing(error: ModuleNotFoundError) -> MissingExtra:
    return MissingExtra(f"{error.name} is not installed, and encryption takes it; run `{install('encryption')}`.")
