"""Take an address before anything heavy is loaded, so that one that is in use is refused in a moment."""

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ragcache.errors import InvalidArgument

_OF_THE_HOST = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@contextmanager
def bind(host: str, port: int) -> Iterator[Sequence[socket.socket]]:
    """Sockets at all addresses that a name stands for, closed at the end; no connection is taken yet.

    Parameters
    ----------
    host : str
        A name or an address, that of IPv6 with or without brackets.
    port : int
        0 lets the system choose.

    Raises
    ------
    InvalidArgument
        If one of them is in use, may not be used by this account, or is not this machine's.
    """
    with ExitStack() as opened:
        try:
            sockets = [opened.enter_context(one) for one in _bind_all(host.strip("[]") or None, port)]
        except OSError as error:
            raise refused(host, port, error) from error
        yield sockets


def listen(sockets: Sequence[socket.socket], waiting: int) -> None:
    """Take connections; so many may wait.

    Raises
    ------
    InvalidArgument
        If another program has begun to listen there since they were bound.
    """
    for one in sockets:
        host, port = one.getsockname()[:2]
        try:
            one.listen(waiting)
        except OSError as error:
            raise refused(host, port, error) from error


def refused(host: str, port: int, error: OSError) -> InvalidArgument:
    """The error of whoever cannot listen at an address."""
    of_the_host = isinstance(error, socket.gaierror) or error.errno in _OF_THE_HOST
    reason, option = error.strerror or error, "--host" if of_the_host else "--port"
    return InvalidArgument(f"{host}:{port} cannot be listened on ({reason}); name another with {option}")


def _bind_all(host: str | None, port: int) -> Iterator[socket.socket]:
    """One at each address of a name; what this machine has not got, say IPv6, is left out if another remains."""
    bound, lacking = 0, None
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            yield _bound(family, address)
            bound += 1
        except OSError as error:
            if error.errno not in _OF_THE_HOST:
                raise
            lacking = error
    if lacking is not None and not bound:
        raise lacking


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a port rests a minute after its server
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has a socket of its own
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made
