"""A small index: three pages, and an embedder that counts letters."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAGES = {
    "bridge.md": "# The bridge\n\nThe bridge was built in 1931. It is painted green. Two brothers designed it.",
    "harbour.txt": "The harbour master counts the boats every spring. He writes the number into a blue book.",
    "mill.md": "The mill grinds rye on Mondays, and nobody remembers why.",
}


class Letters:
    """An embedder that counts letters."""

    name, max_tokens = "letters", 256

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text."""
        rows = np.array([[text.lower().count(letter) for letter in "aeiorst"] for text in texts], np.float32) + 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def write_pages(folder: Path) -> Path:
    """The pages as files; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        (folder / name).write_text(text)
    return folder
