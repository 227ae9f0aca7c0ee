"""Optional packages: imported where they are used, and one clear error where they are absent."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ragcache.errors import MissingExtra, install


@contextmanager
def needs(extra: str = "") -> Iterator[None]:
    """Turn the absence of a package that is imported inside the block into the command that installs it.

    Parameters
    ----------
    extra : str
        The extra that brings the package, such as ``offline``; none where the base installation does.

    Raises
    ------
    MissingExtra
        If a module imported in the block is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in sys.stdlib_module_names:
            raise MissingExtra(
                f"{error.name} is a part of Python and could not be read; see whether {sys.base_prefix} can be, and "
                "repeat the command."
            ) from error
        raise MissingExtra(f"{error.name} is not installed; run `{install(extra)}`.") from error
