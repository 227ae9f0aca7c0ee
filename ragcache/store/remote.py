"""An object store: blobs by name in S3 or what speaks its protocol, Google's, Azure's, or a folder that machines share.

Requests, retries with back-off, and credentials are obstore's, which reads the environment variables of each provider.
Nothing of a credential is written down here, so none may stand in the URL.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ragcache.errors import InvalidArgument, MissingExtra, UnreachableStore, install
from ragcache.model.lazy import Tensor, torch

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

SCHEMES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "file")
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT")
_REST_SECONDS = 10.0  # a store that failed is not asked again for so long
_PIECE = 4 << 20  # bytes of a blob that are taken from the network at once
_ATTEMPTS = 4  # requests for one blob whose answers were cut off


class RemoteStore:
    """Objects by name under one URL. Any number of threads, processes and machines may share it.

    Parameters
    ----------
    url : str
        Such as ``s3://bucket/prefix``. Credentials, region and endpoint come from the environment.
    timeout : float
        Seconds that one request may take.
    patience : float
        Seconds over which a request that failed is repeated.

    Raises
    ------
    InvalidArgument
        If the URL is none of a known kind, or has credentials in it.
    MissingExtra
        If obstore is not installed.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, patience: float = 20.0) -> None:
        self.url = check_url(url)
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ModuleNotFoundError as error:
            raise MissingExtra(f"obstore is not installed; run `{install('remote')}`.") from error
        self._errors = (BaseError, OSError)
        self._resting_until = 0.0
        with self._asking("opened"):
            if urlsplit(url).scheme == "file":
                self._store: Any = from_url(self.url, mkdir=True)
            else:
                self._store = from_url(self.url, client_options=_client(timeout), retry_config=_retries(patience))

    def put_if_absent(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Store an object unless the name has one, in one request that takes effect as a whole.

        Returns
        -------
        bool
            Whether this call did; False too where an earlier try of it did and the answer was lost.

        Raises
        ------
        UnreachableStore
            The store did not take it.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        with self._asking("written to"):
            try:
                obstore.put(self._store, name, [memoryview(part).cast("B") for part in parts], mode="create")
            except AlreadyExistsError:
                return False
        return True

    def put(self, name: str, content: bytes | Path) -> None:
        """Store an object, in the place of one that is there; a file in parts, if it is large.

        Raises
        ------
        UnreachableStore
            The store did not take it.
        """
        import obstore

        with self._asking("written to"):
            obstore.put(self._store, name, content)

    def get(self, name: str) -> Tensor | None:
        """Read an object: uint8, (bytes,); None if there is none.

        An answer that is cut off is asked for again from there on.

        Raises
        ------
        UnreachableStore
            The store did not give it. It is not asked again for a while, so that a question waits only once.
        """
        import obstore

        with self._asking("read", rests=True):
            try:
                answer = obstore.get(self._store, name)
            except FileNotFoundError:
                return None
            buffer = torch.empty(answer.meta["size"], dtype=torch.uint8)
            view, done = buffer.numpy(), 0
            for left in reversed(range(_ATTEMPTS)):
                try:
                    for piece in answer.stream(min_chunk_size=_PIECE):
                        view[done : done + len(piece)] = np.frombuffer(memoryview(piece), np.uint8)
                        done += len(piece)
                    break
                except self._errors:
                    if not left:
                        raise
                    answer = obstore.get(self._store, name, options={"range": (done, len(view))})
            if done < len(view):
                raise OSError(f"{name} ended after {done:,} of {len(view):,} bytes")
            return buffer

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[Tensor] | None:
        """Read byte ranges of an object, neighbouring ones in one request; None if there is none, or one ends before.

        Raises
        ------
        UnreachableStore
            As `get`.
        """
        import obstore

        starts, ends = [start for start, _ in ranges], [stop for _, stop in ranges]
        with self._asking("read", rests=True):
            try:
                found = obstore.get_ranges(self._store, name, starts=starts, ends=ends)
            except FileNotFoundError:
                return None
        read = [torch.from_numpy(np.frombuffer(memoryview(piece), np.uint8).copy()) for piece in found]
        return read if [len(one) for one in read] == [stop - start for start, stop in ranges] else None

    def head(self, name: str) -> int | None:
        """Tell an object's bytes; None if there is none.

        Raises
        ------
        UnreachableStore
            The store did not say.
        """
        import obstore

        with self._asking("read"):
            try:
                return int(obstore.head(self._store, name)["size"])
            except FileNotFoundError:
                return None

    def list(self, prefix: str) -> Iterator[str]:
        """Yield the names of all objects below a prefix.

        Raises
        ------
        UnreachableStore
            The store did not say.
        """
        import obstore

        with self._asking("listed"):
            for page in obstore.list(self._store, prefix, chunk_size=1000):
                for one in page:
                    yield str(one["path"])

    def delete(self, name: str) -> None:
        """Remove an object, if there is one.

        Raises
        ------
        UnreachableStore
            The store did not do it.
        """
        import obstore

        with self._asking("written to"):
            try:
                obstore.delete(self._store, name)
            except FileNotFoundError:
                return

    def move(self, name: str, to: str) -> bool:
        """Give an object another name; False if there is none.

        Raises
        ------
        UnreachableStore
            The store did not do it.
        """
        import obstore

        with self._asking("written to"):
            try:
                obstore.rename(self._store, name, to)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _asking(self, what: str, *, rests: bool = False) -> Iterator[None]:
        if rests and time.monotonic() < self._resting_until:
            raise UnreachableStore(f"{self.url} did not answer a moment ago, and is not asked again yet")
        try:
            yield
        except self._errors as error:
            if rests:
                self._resting_until = time.monotonic() + _REST_SECONDS
            reason = _first_line(error)
            raise UnreachableStore(
                f"{self.url} could not be {what} ({reason}); see whether it is up and the credentials in the "
                "environment are right, and repeat the command"
            ) from error


def check_url(url: str) -> str:
    """Refuse what is no URL of an object store, and credentials in it, which would be written down with it.

    Raises
    ------
    InvalidArgument
        The message does not repeat them.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not (parts.netloc or parts.path.strip("/")):
        raise InvalidArgument(
            f"{url.partition('?')[0]!r} is no URL of an object store; take one such as s3://BUCKET/PREFIX, "
            "gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER"
        )
    if parts.password is not None or parts.query or (parts.username and not parts.scheme.startswith("abfs")):
        raise InvalidArgument(
            f"the {parts.scheme} URL has credentials or options in it, and URLs are written down; set the provider's "
            "environment variables instead, such as AWS_ACCESS_KEY_ID"
        )
    return url.rstrip("/")


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:300]


def _client(timeout: float) -> "ClientConfig":
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    plain = plain or any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS)
    return {
        "timeout": timedelta(seconds=timeout),
        "connect_timeout": timedelta(seconds=min(timeout, 5.0)),
        "allow_http": plain,
    }


def _retries(patience: float) -> "RetryConfig":
    return {
        "max_retries": 8,
        "retry_timeout": timedelta(seconds=patience),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
    }
