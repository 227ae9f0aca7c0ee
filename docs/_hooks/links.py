"""Links of pages that stand in the repository too, as the site needs them."""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

_ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
#: Pages whose text is that of a file beside docs/.
_FROM_THE_ROOT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to files outside docs/, which the site does not have, become their names."""
    path = page.file.src_uri
    if path in _FROM_THE_ROOT:
        text = (_ROOT / _FROM_THE_ROOT[path]).read_text(encoding="utf-8")
        return text.replace("](docs/", "](")

    def shown(found: re.Match[str]) -> str:
        place = normpath(str(PurePosixPath("docs", path).parent / found[2]))
        return found[0] if place.startswith("docs/") else f"{found[1]} (`{place}`)"

    return _LINK.sub(shown, markdown)
