"""What stands in front of every request: who may ask, how large a body may be, and how long it may take."""

import asyncio
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openai_ragcache.api_errors import ApiError, error_response
from openai_ragcache.settings import MIB, ServerSettings, is_loopback
from openai_ragcache.tenants import Tenants

__all__ = ["AskForKey", "LimitBody"]

_GUARDED = ("/v1/", "/metrics")
_UPLOADS = "/v1/files"
_DRAIN_SECONDS = 10.0  # how long what is too large is read and thrown away, so that the client reads the answer


class AskForKey:
    """Finds the tenant of a request by its key, before anything of its body is read.

    Without keys whoever is on this machine may ask, but no web page that a browser on it shows: the `Host` must be the
    machine's own name, or a page elsewhere could have it point here, and the `Origin`, if there is one, the same.

    Parameters
    ----------
    app : ASGIApp
        What is guarded.
    tenants : Tenants
        Who there is.
    """

    def __init__(self, app: ASGIApp, tenants: Tenants) -> None:
        self._app = app
        self._tenants = tenants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, or refuse it."""
        if scope["type"] == "http":
            refused = self._admit(scope)
            if refused is not None:
                await error_response(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _admit(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        if not self._tenants.has_keys and (refused := _refuse_pages(headers)):
            return refused
        if not scope["path"].startswith(_GUARDED):
            return None
        scheme, _, key = headers.get("authorization", "").partition(" ")
        tenant = self._tenants.find(key.strip() if scheme.lower() == "bearer" else "")
        if tenant is None:
            said = "the API key is not known" if key else "an API key is needed: send it as `Authorization: Bearer KEY`"
            return ApiError(said, 401, code="invalid_api_key")
        scope.setdefault("state", {})["tenant"] = tenant
        return None


class LimitBody:
    """Refuses bodies that are too large, or take too long; what is read of those is thrown away at once.

    Parameters
    ----------
    app : ASGIApp
        What is guarded.
    settings : ServerSettings
        The limits.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on with a body that is watched, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        uploads = scope["path"].rstrip("/") == _UPLOADS
        limit = self._settings.max_upload_bytes if uploads else self._settings.max_body_bytes
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            await _drain(receive)
            await error_response(ApiError(_too_large(limit), 413, code="body_too_large"))(scope, receive, send)
            return
        await self._app(scope, _Limited(receive, limit, self._settings.body_seconds), send)


class _Limited:
    """A request's body up to a limit."""

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._limit = limit
        self._left = limit
        self._ends = asyncio.get_running_loop().time() + seconds
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._ends):
                message = await self._receive()
        except TimeoutError as error:
            raise HTTPException(408, "the body did not come in time; send it at once") from error
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._left < 0:
                if not self._whole:
                    await _drain(self._receive)
                raise HTTPException(413, _too_large(self._limit))
        return message


async def _drain(receive: Receive) -> None:
    """Read what a client sends, and keep nothing: one that still sends may not look for an answer."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass
    except TimeoutError:
        pass


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit / MIB:,.3g} MiB; send less at once"


def _refuse_pages(headers: Headers) -> ApiError | None:
    """Refuse what a web page elsewhere had a browser on this machine send."""
    host = headers.get("host", "")
    name = urlsplit(f"//{host}").hostname if _is_plain(host) else None
    if name is None or not is_loopback(name):
        return ApiError(
            "this server asks for no key, so it answers by the name of its own machine only, such as 127.0.0.1",
            403,
            code="host_not_allowed",
        )
    origin = headers.get("origin")
    if origin is None or (_is_plain(origin) and urlsplit(origin).netloc == host):
        return None
    return ApiError("this server asks for no key, so it answers no web page of another site", 403, code="other_origin")


def _is_plain(text: str) -> bool:
    """Whether a host or an origin can be taken apart."""
    try:
        return urlsplit(f"//{text}" if "//" not in text else text).hostname is not None
    except ValueError:
        return False
