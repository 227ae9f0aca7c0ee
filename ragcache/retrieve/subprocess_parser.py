"""Formats that libraries parse from bytes, parsed in another process: what hangs, crashes or grows ends only there."""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Lock, Timer
from typing import IO, Any

from ragcache.errors import MissingExtra
from ragcache.retrieve.formats import BROKEN, READERS
from ragcache.retrieve.parsed import Parsed
from ragcache.retrieve.places import Mark

ISOLATED = frozenset({".pdf", ".docx", ".pptx", ".xlsx", ".xlsm"})
"""Suffixes whose files are parsed here."""

MAX_MEMORY = 4 << 30
"""Bytes of address space that the process may have, where the system can set that."""

_SECONDS, _SECONDS_PER_MIB = 60.0, 20.0  # the slowest of real files took a tenth of it
_CHILD = "from ragcache.retrieve.subprocess_parser import serve; serve()"


class SubprocessParser:
    """One process, started by the first file and again by the first behind one that ended it.

    Bytes go to it and JSON comes back, so what a hostile file makes of its parser is no more than a wrong text.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def parse(self, suffix: str, data: bytes) -> Parsed:
        """Parse a file's bytes by the reader of its suffix.

        Raises
        ------
        ValueError
            If the file is broken, or its parser takes too long or breaks off; with the reason.
        MemoryError
            If it takes more than `MAX_MEMORY`.
        MissingExtra
            If the library is not installed.
        """
        seconds = _SECONDS + _SECONDS_PER_MIB * len(data) / (1 << 20)
        expired = Event()
        with self._lock:
            process = self._taken()
            timer = Timer(seconds, _expire, (process, expired))
            timer.start()
            try:
                answer = _ask(process, suffix, data)
                self._process = process
            except (OSError, EOFError) as error:
                status = process.wait()
                why = f"took longer than the {seconds:.0f} seconds allowed" if expired.is_set() else "broke off"
                raise ValueError(f"its parser {why} (exit status {status})") from error
            finally:
                timer.cancel()
                if self._process is None:  # interrupted in mid-answer: nothing more is to be had of it
                    _end(process)
        return _parsed(answer)

    def close(self) -> None:
        """End the process; the next file starts another."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                _end(process)

    def forget(self) -> None:
        """Leave the process to another one, whose it is: this one is its fork."""
        if (process := self._process) is not None:
            process.returncode = 0
            for pipe in filter(None, (process.stdin, process.stdout)):
                pipe.close()
        self._process, self._lock = None, Lock()

    def _taken(self) -> subprocess.Popen[bytes]:
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            return process
        # -P: a module of the current folder, which may be the one that is ingested, is not imported.
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )


def _expire(process: subprocess.Popen[bytes], expired: Event) -> None:
    expired.set()
    process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with suppress(OSError, ValueError):  # its pipe is broken, or closed
        process.communicate()


def _ask(process: subprocess.Popen[bytes], suffix: str, data: bytes) -> dict[str, Any]:
    """Send a line that says what comes, and the bytes; read a line of JSON."""
    if process.stdin is None or process.stdout is None:
        raise EOFError
    process.stdin.write(json.dumps({"suffix": suffix, "size": len(data)}).encode() + b"\n" + data)
    process.stdin.flush()
    line = process.stdout.readline(MAX_MEMORY)
    if not line.endswith(b"\n"):
        raise EOFError
    answer: dict[str, Any] = json.loads(line)
    return answer


def _parsed(answer: Mapping[str, Any]) -> Parsed:
    match answer:
        case {"broken": reason}:
            raise ValueError(reason)
        case {"memory": _}:
            raise MemoryError
        case {"missing": reason}:
            raise MissingExtra(reason)
    return Parsed(answer["text"], answer["title"], tuple(Mark(*mark) for mark in answer["marks"]))


# -- in the other process ---------------------------------------------------------------------------------------------
def serve() -> None:
    """Parse what comes on standard input until it ends."""
    _limit_memory()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    while line := requests.readline():
        _serve_one(json.loads(line), requests, answers)


def _serve_one(request: Mapping[str, Any], requests: IO[bytes], answers: IO[bytes]) -> None:
    try:
        parsed = READERS[request["suffix"]](requests.read(request["size"]))
        answer = json.dumps({"text": parsed.text, "title": parsed.title, "marks": parsed.marks}).encode()
    except MissingExtra as error:
        answer = json.dumps({"missing": str(error)}).encode()
    except MemoryError:
        answer = json.dumps({"memory": MAX_MEMORY}).encode()
    except BROKEN as error:
        answer = json.dumps({"broken": str(error) or type(error).__name__}).encode()
    answers.write(answer + b"\n")
    answers.flush()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return  # Windows: time is limited, memory is not
    with suppress(OSError, ValueError):  # macOS knows the limit and refuses it
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


PARSER = SubprocessParser()
"""What all of this process's documents are parsed by."""

atexit.register(PARSER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PARSER.forget)
