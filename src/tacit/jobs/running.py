"""Where a job runs: this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, Self, TypeVar

from pydantic import model_validator

from tacit.devices import computing_on
from tacit.errors import BadParameterError
from tacit.jobs.config import Config
from tacit.jobs.fields import Address, Engine, Workers
from tacit.needs import RAY, Ability

if TYPE_CHECKING:
    from tacit.engines.cluster.session import Cluster


Options = ParamSpec("Options")
Result = TypeVar("Result")


class HasDevice(Protocol):
    """A configuration that says where its models compute."""

    @property
    def device(self) -> str: ...


PlacedConfig = TypeVar("PlacedConfig", bound=HasDevice)


def on_its_device(
    run: Callable[Concatenate[PlacedConfig, Options], Result],
) -> Callable[Concatenate[PlacedConfig, Options], Result]:
    """The same job, with all models that it loads in this process on the device of its configuration."""

    @wraps(run)
    def placed(config: PlacedConfig, /, *args: Options.args, **kwargs: Options.kwargs) -> Result:
        with computing_on(config.device):
            return run(config, *args, **kwargs)

    return placed


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
