"""`python -m ragcache_bench.redraw [FOLDER]`: a folder's tables and pictures again, from its JSON alone."""

import json
import sys
from pathlib import Path
from typing import Any

from ragcache.errors import InvalidArgument
from ragcache_bench.pages.columns import markdown
from ragcache_bench.pages.hero import draw_hero
from ragcache_bench.pages.picture import draw
from ragcache_bench.pages.times import draw_times
from ragcache_bench.report import read
from ragcache_bench.speed.latency import Latency


def redraw(folder: Path) -> list[Path]:
    """Draw what stands beside each JSON of a folder, and the README's picture; nothing is measured.

    Parameters
    ----------
    folder : Path
        With the JSON that benchmarks wrote; what has no picture gets none.

    Returns
    -------
    list of Path
        The pictures.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    pictures = [file.with_suffix(".png") for file in sorted(folder.glob("*.json"))]
    drawn = [picture for picture in pictures if picture.exists()]
    for picture in drawn:
        content = json.loads(picture.with_suffix(".json").read_text(encoding="utf-8"))
        if "scaling" in content:
            draw_times(picture, [Latency(**row) for row in content["rows"]])
        else:
            _quality(picture.with_suffix(".json"), content)
    draw_hero(folder / "hero.png", folder)
    return [*drawn, folder / "hero.png"]


def _quality(file: Path, content: dict[str, Any]) -> None:
    found = read(file)
    rows = [*found.pooled, *found.rows]
    file.with_suffix(".md").write_text(markdown(rows, found.about, found.gaps), encoding="utf-8")
    sweep = file.with_suffix(".html").exists()  # whose picture shows the pools alone
    draw(file.with_suffix(".png"), found.pooled if sweep and content.get("pooled") else rows)


if __name__ == "__main__":
    try:
        for made in redraw(Path(sys.argv[1] if sys.argv[1:] else "docs/benchmarks")):
            print(made)
    except InvalidArgument as error:
        sys.exit(str(error))
