"""The page at `/`: files of our own, and nothing from anywhere else."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from openai_ragcache.api_errors import not_found

router = APIRouter()
_SCRIPTS = ("page", "shared", "ask", "documents", "history")
_KINDS = {"style.css": "text/css", **{f"{name}.js": "text/javascript" for name in _SCRIPTS}}
_ONLY_OURS = "; ".join(
    [
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src data:"),
        *("form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"),
    ]
)


@router.get("/")
async def show_page() -> Response:
    """The page."""
    return _send("index.html", "text/html")


@router.get("/page/{name}")
async def send_part(name: str) -> Response:
    """How it looks, or what it does."""
    if name not in _KINDS:
        raise not_found("part of the page", name)
    return _send(name, _KINDS[name])


def _send(name: str, kind: str) -> Response:
    headers = {
        "Content-Security-Policy": _ONLY_OURS,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    data = files("openai_ragcache").joinpath("page", name).read_bytes()
    return Response(data, media_type=f"{kind}; charset=utf-8", headers=headers)
