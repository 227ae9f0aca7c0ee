"""Errors in OpenAI's shape: what it is, which parameter, and what to do."""

import logging
import re
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from openai_ragcache.engine_queue import NobodyWaits, QueueClosed, QueueFull
from ragcache.errors import (
    EmptyIndex,
    InvalidArgument,
    MissingEncoding,
    NoDocuments,
    OutOfMemory,
    PromptTooLong,
    RagCacheError,
    UnreachableStore,
    UnreadableDocument,
    UnsupportedDocument,
    UnsupportedModel,
    UnusableIndex,
    WorkerDied,
)

_FOLDERS = re.compile(r"(?<![\w./~-])/(?:[^\s/'\"`]+/)+")
_TYPE = re.compile(r"(?:function-\w+|constrained-\w+|list|dict)\[.*\]")  # pydantic's word for what was tried
_CLIENT_LEFT = 499  # nobody reads it, but logs
_ASKED_WRONGLY = (
    InvalidArgument,
    UnsupportedModel,
    EmptyIndex,
    MissingEncoding,
    NoDocuments,
    UnsupportedDocument,
    UnreadableDocument,
)
_MAY_PASS = (OutOfMemory, UnreachableStore, WorkerDied)
_log = logging.getLogger(__name__)


class ApiError(Exception):
    """A refusal that the client is told of.

    Parameters
    ----------
    message : str
        What is wrong, and what to do.
    status : int
        HTTP status.
    param, code : str, optional
        Which parameter, and what programs tell it by.
    kind : str
        OpenAI's `type`.
    """

    def __init__(
        self,
        message: str,
        status: int = 400,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code, self.kind = message, status, param, code, kind

    @property
    def body(self) -> dict[str, Any]:
        """As it is sent."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


def not_found(what: str, name: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """Say that there is nothing of a name; another tenant's is as unknown as any."""
    return ApiError(f"there is no {what} {_shown(name)}", 404, param=param, code=code)


def unknown_parameter(name: str) -> ApiError:
    """Say that a parameter means nothing here."""
    return ApiError(f"the parameter {_shown(name)} is not known; leave it out", param=name, code="unknown_parameter")


def hide_folders(text: str) -> str:
    """A message without the folders in front of a file's name: they are the server's affair."""
    return _FOLDERS.sub("", text)


def as_api_error(error: Exception) -> ApiError:
    """What a client is told of an error; a bug's own words are not among it."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, PromptTooLong):
        return ApiError(hide_folders(str(error)), code="context_length_exceeded", param="messages")
    if isinstance(error, _ASKED_WRONGLY):
        return ApiError(hide_folders(str(error)))
    if isinstance(error, RagCacheError):  # the host's affair; what may pass is a 503, which clients try again
        status = 503 if isinstance(error, _MAY_PASS) or type(error) is UnusableIndex else 500
        return ApiError(hide_folders(str(error)), status, kind="server_error")
    if isinstance(error, QueueFull):
        return ApiError(str(error), 429, kind="rate_limit_error", code="queue_full")
    if isinstance(error, QueueClosed):
        return ApiError(str(error), 503, kind="server_error", code="shutting_down")
    if isinstance(error, NobodyWaits):
        return ApiError("the request was broken off", _CLIENT_LEFT, kind="server_error", code="client_left")
    return ApiError("the server failed; its log says why", 500, kind="server_error")


def error_response(error: Exception) -> JSONResponse:
    """The same as a response."""
    told = as_api_error(error)
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, QueueFull) else {}
    if told.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(told.body, told.status, headers)


def add_handlers(app: FastAPI) -> None:
    """Answer every error in OpenAI's shape."""

    async def tell(request: Request, error: Exception) -> JSONResponse:
        response = error_response(error)
        if response.status_code >= 500 and isinstance(error, RagCacheError):  # other kinds are logged, or no failure
            _log.error("%s %s failed: %s", request.method, request.url.path, error)
        return response

    async def tell_invalid(request: Request, error: Exception) -> JSONResponse:
        return error_response(_invalid(_furthest(error.errors()) if isinstance(error, RequestValidationError) else {}))

    async def tell_http(request: Request, error: Exception) -> JSONResponse:
        return error_response(_refused(request, error))

    for kind in (ApiError, RagCacheError, QueueFull, QueueClosed, NobodyWaits, Exception):
        app.add_exception_handler(kind, tell)
    app.add_exception_handler(RequestValidationError, tell_invalid)
    app.add_exception_handler(HTTPException, tell_http)


def _refused(request: Request, error: Exception) -> ApiError:
    """What the framework refuses: unknown paths, other methods, bodies that are no JSON or no form."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return ApiError(f"there is nothing at {request.method} {_shown(request.url.path)}", 404, code="unknown_url")
    said = str(error.detail) if isinstance(error, HTTPException) else "the request was refused"
    return ApiError(said, status)


def _furthest(errors: Sequence[Any]) -> Any:
    """The first error; where a parameter may be one thing or another, that of the one which it resembles most."""
    where = errors[0].get("loc", ())[:2]
    return max((error for error in errors if error.get("loc", ())[:2] == where), key=lambda error: len(error["loc"]))


def _invalid(found: Any) -> ApiError:
    """The first thing that is wrong with a body, by the parameter's path."""
    kind, context = found.get("type", ""), found.get("ctx") or {}
    if kind == "json_invalid":
        return ApiError("the body is no JSON", code="invalid_json")
    if len(found.get("loc", ())) <= 1 and kind in ("model_attributes_type", "dict_type", "missing"):
        return ApiError("the body must be a JSON object, sent as application/json", code="invalid_json")
    path = ".".join(str(part) for part in found.get("loc", ())[1:] if not _TYPE.fullmatch(str(part)))
    param = context.get("param") or path or None
    if kind == "extra_forbidden":
        return unknown_parameter(path)
    if kind in ("unsupported_parameter", "unsupported_content"):
        return ApiError(found["msg"], param=param, code=kind)
    missing = kind == "missing"
    said = f"{_shown(param or 'the body')} is missing" if missing else f"{_shown(param or 'the body')}: {found['msg']}"
    return ApiError(said, param=param, code="missing_required_parameter" if missing else "invalid_value")


def _shown(name: str) -> str:
    """A name of the client's own in a message, whatever it holds."""
    return ascii(name[:80])
