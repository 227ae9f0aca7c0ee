"""Readers by name: the bundled one, and any checkpoint."""

from ragcache import bundled
from ragcache.model.reader import Reader

BUNDLED = "bundled"


def load_reader(name: str, *, dtype: str = "auto", device: str | None = None) -> Reader:
    """`Reader.load`, where "bundled" names the reader that comes with the package.

    Parameters
    ----------
    name, dtype, device
        As in `Reader.load`.

    Raises
    ------
    InvalidArgument, UnsupportedModel
        As `Reader.load`.
    """
    if name != BUNDLED:
        return Reader.load(name, dtype=dtype, device=device)
    reader = Reader.load(str(bundled.reader_path()), dtype=dtype, device=device)
    reader.name = BUNDLED
    return reader
