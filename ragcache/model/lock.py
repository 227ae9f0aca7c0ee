"""A mutex that serves waiters in order of arrival."""

import threading
from collections import deque


class FairLock:
    """A mutex that serves waiters in order of arrival; threading.Lock promises no order."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    def __enter__(self) -> None:
        turn = threading.Event()
        with self._guard:
            self._waiting.append(turn)
            self._waiting[0].set()
        try:
            turn.wait()
        except BaseException:  # an interrupt while waiting must not keep the turn
            self._leave(turn)
            raise

    def __exit__(self, *error: object) -> None:
        self._leave(self._waiting[0])

    def _leave(self, turn: threading.Event) -> None:
        with self._guard:
            self._waiting.remove(turn)
            if self._waiting:
                self._waiting[0].set()
