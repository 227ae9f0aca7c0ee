"""The page at `/`: three files of our own, and nothing from anywhere else."""

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter()
_KINDS = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_ONLY_OURS = "; ".join(
    [
        *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src data:"),
        *("form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"),
    ]
)


@router.get("/")
async def show_page() -> Response:
    """The page."""
    return _send("index.html")


@router.get("/page.css")
async def send_style() -> Response:
    """How it looks."""
    return _send("page.css")


@router.get("/page.js")
async def send_script() -> Response:
    """What it does."""
    return _send("page.js")


def _send(name: str) -> Response:
    headers = {
        "Content-Security-Policy": _ONLY_OURS,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    data = files("openai_ragcache").joinpath("page", name).read_bytes()
    return Response(data, media_type=f"{_KINDS[name]}; charset=utf-8", headers=headers)
