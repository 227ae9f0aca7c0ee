"""Readers by name."""

from ragcache import bundled
from ragcache.model.fallback import FallbackReader
from ragcache.model.reader import Reader

BUNDLED = "bundled"


def load_reader(name: str, *, dtype: str = "auto", device: str | None = None, reuse: bool = True) -> Reader:
    """`Reader.load`, where "bundled" names the reader that comes with the package.

    Parameters
    ----------
    name, dtype, device
        As in `Reader.load`.
    reuse : bool
        Whether a model is refused whose KV cannot be moved; otherwise it is loaded for full prefill.

    Raises
    ------
    InvalidArgument, UnsupportedModel
        As `Reader.load`.
    """
    kind = Reader if reuse else FallbackReader
    if name != BUNDLED:
        return kind.load(name, dtype=dtype, device=device)
    reader = kind.load(str(bundled.reader_path()), dtype=dtype, device=device)
    reader.name = BUNDLED
    return reader
