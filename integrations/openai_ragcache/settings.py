"""What a server is started with, and what is refused before it listens."""

import ipaddress
from dataclasses import dataclass

from ragcache.errors import InvalidArgument

MIB = 1 << 20


@dataclass(frozen=True)
class ServerSettings:
    """Where a server listens, and what it takes.

    Attributes
    ----------
    host : str
        The address it listens on.
    port : int
        0 lets the system choose.
    model : str
        What clients call the model; the reader's own name by default.
    queue : int
        Most requests that wait for the engine; the next one is refused with 429.
    max_body_bytes, max_upload_bytes : int
        Most bytes of a request's body, and of one that uploads a file.
    max_prompt_tokens : int or None
        Most tokens of a prompt; None for what the model takes.
    max_tokens : int
        Most tokens of an answer, where the request does not say.
    headers_seconds, body_seconds : float
        How long a client may take to send a request's headers, and its body.
    shutdown_seconds : int
        How long answers may take to end once the server is told to stop.
    verify : float
        Share of the answers from reused KV that are repeated by full prefill when the engine is idle, in [0, 1].
    least_agreement : float
        Share of those that full prefill should confirm, in [0, 1]; below it answers say so.
    fall_back : bool
        Whether full prefill answers below it, until reuse agrees with it again.
    ingest_embedded_bytes : int
        Most KV, for each tenant, of texts that were sent to be embedded, and are prefilled in idle time; none with 0.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    model: str = ""
    queue: int = 32
    max_body_bytes: int = 4 * MIB
    max_upload_bytes: int = 64 * MIB
    max_prompt_tokens: int | None = None
    max_tokens: int = 512
    headers_seconds: float = 20.0
    body_seconds: float = 60.0
    shutdown_seconds: int = 30
    verify: float = 0.0
    least_agreement: float = 0.9
    fall_back: bool = False
    ingest_embedded_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("queue", "max_body_bytes", "max_upload_bytes", "max_prompt_tokens", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidArgument(f"{name} is {value}; give at least 1")
        for name in ("verify", "least_agreement"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InvalidArgument(f"{name} is {value}; give a share from 0 to 1")
        if self.ingest_embedded_bytes < 0:
            raise InvalidArgument(f"ingest_embedded_bytes is {self.ingest_embedded_bytes}; give 0 or more bytes")
        if self.fall_back and not self.verify:
            raise InvalidArgument("nothing is verified, so nothing tells when to fall back; give --verify 0.02, say")
        if not 0 <= self.port < 65536:
            raise InvalidArgument(f"port is {self.port}; give one from 1 to 65535, or 0 for any that is free")

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can connect."""
        return is_loopback(self.host)

    def check_exposure(self, *, has_keys: bool) -> None:
        """Refuse to listen where others can connect, and to ask nobody for a key.

        Raises
        ------
        InvalidArgument
            The message says how to get either.
        """
        if not has_keys and not self.is_loopback:
            raise InvalidArgument(
                f"{self.host} can be reached from other machines, and no key is asked for; set the environment "
                "variable RAGCACHE_API_KEY, name a file with --keys, or listen on 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Whether an address, or a name, is this machine's own, which no other can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
