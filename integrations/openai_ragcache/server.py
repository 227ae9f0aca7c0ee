"""What the routes have in common: tenants, the engine's queue, settings, and the names of the models."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, cast

from fastapi import Depends, Request

from openai_ragcache.agreement import Verifier
from openai_ragcache.api_errors import ApiError
from openai_ragcache.embedded import EmbeddedTexts
from openai_ragcache.engine_queue import EngineQueue
from openai_ragcache.history import History
from openai_ragcache.learning import Learner
from openai_ragcache.metrics import Metrics
from openai_ragcache.settings import ServerSettings
from openai_ragcache.tenants import Tenant, Tenants


@dataclass(frozen=True, eq=False)
class Server:
    """A server that runs.

    Attributes
    ----------
    settings : ServerSettings
        What it was started with.
    tenants : Tenants
        Who may ask.
    queue : EngineQueue
        Work for the engine.
    metrics : Metrics
        What is counted.
    verifier : Verifier
        Repeats some answers by full prefill.
    began : int
        Seconds since 1970.
    """

    settings: ServerSettings
    tenants: Tenants
    queue: EngineQueue
    metrics: Metrics
    verifier: Verifier
    began: int = field(default_factory=lambda: int(time.time()))
    _learners: dict[Tenant, Learner] = field(default_factory=dict)
    _embedded: dict[Tenant, EmbeddedTexts] = field(default_factory=dict)
    _histories: dict[Tenant, History] = field(default_factory=dict)

    def learner(self, tenant: Tenant) -> Learner:
        """What notices the texts that come again in a tenant's prompts."""
        return self._learners.setdefault(tenant, Learner(tenant.rag.index, self.queue))

    def embedded(self, tenant: Tenant) -> EmbeddedTexts:
        """What takes in the texts that a tenant has embedded."""
        if tenant not in self._embedded:
            self._embedded[tenant] = EmbeddedTexts(tenant.rag, self.queue, self.settings.ingest_embedded_bytes)
        return self._embedded[tenant]

    def history(self, tenant: Tenant) -> History:
        """What a tenant's answers were made from."""
        return self._histories.setdefault(tenant, History())

    @property
    def model(self) -> str:
        """What clients call the model: a name that was given, the hub's, or its folder's."""
        name = self.settings.model or self.tenants.all[0].rag.reader.name
        return Path(name).name if Path(name).is_absolute() else name

    def check_model(self, name: str) -> None:
        """Refuse any other model's name.

        Raises
        ------
        ApiError
            404, with the name of the one there is.
        """
        if name != self.model:
            raise ApiError(
                f"there is no model {name[:80]!a} here; this server has {self.model!r}",
                404,
                param="model",
                code="model_not_found",
            )


def _server(request: Request) -> Server:
    return cast(Server, request.app.state.server)


def _tenant(request: Request) -> Tenant:
    return cast(Tenant, request.state.tenant)


ServerOf = Annotated[Server, Depends(_server)]
TenantOf = Annotated[Tenant, Depends(_tenant)]
