"""Agreement while a server runs: some answers are repeated by full prefill when the engine is idle."""

import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Any

from openai_ragcache.engine_queue import EngineQueue
from openai_ragcache.metrics import Metrics
from openai_ragcache.settings import ServerSettings
from openai_ragcache.tenants import Tenant
from ragcache.engine.request import Request
from ragcache.engine.stream import Stream
from ragcache.engine.verify import Given, Verification, verify_by_full_prefill, verify_by_reuse, wilson_interval

_RECENT, _LEAST = 200, 20  # verified answers that are looked at, and those below which nothing is said
_WORST = 10
_SHOWN = 400  # characters of a question, and of an answer, that are kept
_WORTH_SHOWING = 0.01  # nats, of an answer that was confirmed


@dataclass(frozen=True)
class Case:
    """A verified answer; `time` is seconds since 1970."""

    question: str
    answer: str
    verification: Verification
    time: float

    @property
    def badness(self) -> tuple[bool, float]:
        """Sorts cases: another answer is worse than another distribution."""
        return not self.verification.confirmed, self.verification.first_token_kl


class Agreement:
    """How often full prefill has confirmed a tenant's answers; threads may look while one adds.

    Parameters
    ----------
    bound : float
        The share that is wanted.
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound
        self.verified = 0
        self.confirmed = 0
        self.kl_sum = 0.0
        self.worst: tuple[Case, ...] = ()
        self._recent: deque[tuple[float, bool]] = deque(maxlen=_RECENT)
        self.is_below = False

    def add(self, case: Case) -> None:
        """Count an answer.

        The bound is missed where the 95 % interval of the last answers is below it, and met again once their share is.
        """
        self.verified += 1
        self.confirmed += case.verification.confirmed
        self.kl_sum += case.verification.first_token_kl
        others = [one for one in self.worst if one.question != case.question]
        self.worst = tuple(nlargest(_WORST, (*others, case), key=lambda one: one.badness))
        self._recent.append((case.time, case.verification.confirmed))
        if len(self._recent) >= _LEAST:
            share, (_, high) = self.share, self.interval
            self.is_below = share < self.bound if self.is_below else high < self.bound

    @property
    def share(self) -> float:
        """Of the last answers, those that were confirmed; 1 where none was verified."""
        recent = list(self._recent)
        return sum(confirmed for _, confirmed in recent) / len(recent) if recent else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval, after Wilson."""
        return wilson_interval(self.share, len(self._recent))

    def as_dict(self) -> dict[str, Any]:
        """The same for the page; questions and answers are the tenant's own."""
        low, high = self.interval
        return {
            "verified": self.verified,
            "confirmed": self.confirmed,
            "recent": {"verified": len(self._recent), "share": self.share, "low": low, "high": high},
            "marks": [{"time": when, "confirmed": confirmed} for when, confirmed in list(self._recent)],
            "first_token_kl": _finite(self.kl_sum / self.verified) if self.verified else None,
            "bound": self.bound,
            "below": self.is_below,
            "worst": [
                {
                    "question": one.question,
                    "answer": one.answer,
                    "time": one.time,
                    **describe_verification(one.verification),
                }
                for one in self.worst
                if not one.verification.confirmed or one.verification.first_token_kl >= _WORTH_SHOWING
            ],
        }


def describe_verification(verification: Verification) -> dict[str, Any]:
    """A verification for clients."""
    return {
        "confirmed": verification.confirmed,
        "agreed_tokens": verification.agreed,
        "first_token_kl": _finite(verification.first_token_kl),
        "instead": verification.instead,
    }


def _finite(number: float) -> float | None:
    """A number, or None where it is infinite: JSON has no word for that."""
    return number if math.isfinite(number) else None


class Verifier:
    """Draws answers to be verified, and has a tenant's requests answered by full prefill where that is told to.

    Parameters
    ----------
    settings : ServerSettings
        The share that is drawn, and what to do below the bound.
    queue : EngineQueue
        Whose idle time is used.
    metrics : Metrics
        Where it is counted.
    draw : callable
        Gives a number from 0 up to 1 for each answer.
    """

    def __init__(
        self,
        settings: ServerSettings,
        queue: EngineQueue,
        metrics: Metrics,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._metrics = metrics
        self._draw = draw
        self._of_tenants: dict[Tenant, Agreement] = {}
        metrics.watch_agreement(lambda: sum(one.is_below for one in list(self._of_tenants.values())))

    def agreement(self, tenant: Tenant) -> Agreement:
        """How often a tenant's answers have been confirmed."""
        return self._of_tenants.setdefault(tenant, Agreement(self._settings.least_agreement))

    def choose(self, tenant: Tenant, request: Request) -> Request:
        """The request as it is to be answered: with a note below the bound, or by full prefill."""
        agreement = self.agreement(tenant)
        if not agreement.is_below or request.method.encode is None:
            return request
        said = (
            f"full prefill confirmed {agreement.share:.0%} of the last verified answers, fewer than the "
            f"{agreement.bound:.0%} that are wanted"
        )
        if self._settings.fall_back:
            return request.by_full_prefill(f"{said}: it answers until reuse agrees with it again")
        return replace(request, notes=(*request.notes, f"{said}; `ragcache serve --fall-back` has it answer instead"))

    def offer(self, tenant: Tenant, request: Request, answered: Request, stream: Stream) -> None:
        """Verify an answer later, if it is drawn.

        Parameters
        ----------
        tenant : Tenant
            Whose it is.
        request, answered : Request
            As the server would answer it by reuse, and as it did.
        stream : Stream
            The answer, read to its end.
        """
        if request.method.encode is None or not can_verify(stream) or self._draw() >= self._settings.verify:
            return
        if answered is not request and answered.method.encode is None:
            given, repeat = Given.of(answered, stream), request
        elif is_approximate(stream):
            given, repeat = Given.of(answered, stream), None
        else:
            return
        text = stream.answer.text

        def verify(give_way: Callable[[], None]) -> None:
            index = tenant.rag.index
            with index.reader.checked(give_way):
                found = verify_by_reuse(given, repeat, index) if repeat else verify_by_full_prefill(given, index)
            self.count(tenant, request.question, text, found)

        if not self._queue.when_idle(verify):
            self._metrics.unverified.inc()

    def count(self, tenant: Tenant, question: str, answer: str, found: Verification) -> None:
        """Count what full prefill says of an answer."""
        self.agreement(tenant).add(Case(question[-_SHOWN:], answer[:_SHOWN], found, time.time()))
        self._metrics.note_verification(found)


def is_approximate(stream: Stream) -> bool:
    """Whether an answer may differ from full prefill's: KV was reused that is not exact."""
    return any(chunk.cache == "hit" for chunk in stream.report.chunks)


def can_verify(stream: Stream) -> bool:
    """Whether an answer could be repeated: a sampled one could not."""
    sampling = stream.sampling
    return not stream.refused and sampling.temperature == 0 and sampling.repetition_penalty == 1
