"""Where a job runs: this machine, or a cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Config
from tacit.jobs.fields import Address, Engine, Workers
from tacit.needs import RAY, Ability

if TYPE_CHECKING:
    from tacit.engines.cluster.session import Cluster


class EngineOptions(Config):
    """The options of jobs that a cluster can do; they change where the work is done, never its result."""

    engine: Engine = "local"
    address: Address = None
    workers: Workers = 1

    @model_validator(mode="after")
    def _address_belongs_to_a_cluster(self) -> Self:
        if self.address is not None and self.engine != "ray":
            raise BadParameterError(
                "address-without-cluster",
                "{option.address} belongs to {option.engine[ray]}: add that, or leave out {option.address}",
            )
        return self

    def needs(self) -> list[Ability]:
        return [RAY] if self.on_cluster else []

    @property
    def on_cluster(self) -> bool:
        return self.engine == "ray"

    def cluster(self) -> AbstractContextManager[Cluster | None]:
        """The cluster, while the job needs it; None for the local engine."""
        if not self.on_cluster:
            return nullcontext(None)
        from tacit.engines.cluster.session import cluster

        return cluster(self.address, self.workers)
