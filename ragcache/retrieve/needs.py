"""Optional packages: imported where they are used, and one clear error where they are absent."""

from collections.abc import Iterator
from contextlib import contextmanager

from ragcache.errors import MissingExtra


@contextmanager
def needs(install: str) -> Iterator[None]:
    """Turn the absence of a package that is imported inside the block into the command that installs it.

    Parameters
    ----------
    install : str
        What to hand to ``pip install``, such as ``ragcache[offline]``.

    Raises
    ------
    MissingExtra
        If a module imported in the block is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{error.name} is not installed; run `pip install '{install}'`.") from error
