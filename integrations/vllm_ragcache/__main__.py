"""`python -m vllm_ragcache --index DIR [options of vLLM]`: the OpenAI server with the connector."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ragcache.errors import RagCacheError
from ragcache.methods import DEFAULT_METHOD
from vllm_ragcache.launch import server_arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Start vLLM's server in the place of this process.

    Returns
    -------
    int
        Exit status, where it was not started.
    """
    parser = argparse.ArgumentParser(
        prog="python -m vllm_ragcache",
        description="vLLM's OpenAI server, which loads the KV of chunks from an index. Other options are vLLM's own.",
        allow_abbrev=False,
    )
    parser.add_argument("--index", type=Path, required=True, help="folder of the index")
    parser.add_argument("--method", default=DEFAULT_METHOD, help="for requests that name none (default: %(default)s)")
    parser.add_argument("--memory-gb", type=float, help="most KV that a worker keeps in memory (default: 1)")
    parser.add_argument("--dry-run", action="store_true", help="print the command, and start nothing")
    own, options = parser.parse_known_args(arguments)
    try:
        size = None if own.memory_gb is None else int(own.memory_gb * (1 << 30))
        command = server_arguments(own.index, options, method=own.method, memory_bytes=size)
    except RagCacheError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    if own.dry_run:
        print(shlex.join(command))
        return 0
    return os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
