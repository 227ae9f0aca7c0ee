"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

IndexPath = Annotated[Path, typer.Option("--index", metavar="DIR", help="Folder of the index.")]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Hub id or folder of the model; without it the index's own, else the small bundled reader.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout instead of text.")]

DEFAULT_INDEX = Path("index")
