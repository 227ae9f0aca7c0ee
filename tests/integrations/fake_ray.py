"""Ray in one process, for what is decided on this side of it: who is asked what, and what a worker's death does."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


class Death(BaseException):
    """Raised by a worker of a test: as if its process were killed."""


class RayActorError(Exception):
    """As Ray's."""


class RayTaskError(Exception):
    """As Ray's."""


@dataclass(eq=False)
class Ref:
    """What was asked of a worker; done when somebody looks."""

    actor: "Actor"
    verb: str
    arguments: tuple[Any, ...]


class Actor:
    """A worker's handle."""

    def __init__(self, make: Any, arguments: tuple[Any, ...]) -> None:
        self.own = make(*arguments)
        self.dead = False

    def __getattr__(self, verb: str) -> Any:
        return SimpleNamespace(remote=lambda *arguments: Ref(self, verb, arguments))


class FakeRay:
    """The part of Ray that is used."""

    exceptions = SimpleNamespace(RayActorError=RayActorError, RayTaskError=RayTaskError)

    def __init__(self, **resources: float) -> None:
        self.resources = resources or {"CPU": 3.0}
        self.started, self.killed, self.options = 0, 0, dict[str, Any]()
        self.up = False

    def is_initialized(self) -> bool:
        return self.up

    def init(self, **how: Any) -> None:
        self.up, self.how = True, how

    def shutdown(self) -> None:
        self.up = False

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def remote(self, make: Any) -> Any:
        def options(**given: Any) -> Any:
            self.options = given
            return SimpleNamespace(remote=lambda *arguments: self._start(make, arguments))

        return SimpleNamespace(options=options)

    def _start(self, make: Any, arguments: tuple[Any, ...]) -> Actor:
        self.started += 1
        return Actor(make, arguments)

    def wait(self, refs: list[Ref], num_returns: int, timeout: float) -> tuple[list[Ref], list[Ref]]:
        assert refs, "nothing to wait for: that would hang"
        return refs[:1], refs[1:]

    def get(self, ref: Ref) -> Any:
        if ref.actor.dead:
            raise RayActorError("the worker is dead")
        try:
            return getattr(ref.actor.own, ref.verb)(*ref.arguments)
        except Death as death:
            ref.actor.dead = True
            raise RayActorError("the worker died") from death

    def kill(self, actor: Actor) -> None:
        self.killed += 1
