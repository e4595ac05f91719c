"""Where a command works: `--engine local` (this process and its workers) or `--engine ray` (a cluster)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from tacit.errors import BadParameterError

if TYPE_CHECKING:
    from tacit.engines.cluster.session import Cluster

LOCAL, RAY = "local", "ray"
ENGINES: Final = (LOCAL, RAY)
ENGINE_HELP: Final = (
    "'local' (this machine), or 'ray' (a cluster; reads folders of files and fsspec paths such as s3://)."
)
ADDRESS_HELP: Final = "With --engine ray: a running cluster ('auto', or HOST:PORT); by default one is started here."
WORKERS_HELP: Final = "With --engine ray: how many workers."


def uses_cluster(engine: str, address: str | None) -> bool:
    """Whether a cluster was asked for."""
    if engine not in ENGINES:
        raise BadParameterError(
            "unknown-engine",
            "--engine must be one of {engines}, not '{engine}'",
            engines=", ".join(ENGINES),
            engine=engine,
        )
    if address is not None and engine != RAY:
        raise BadParameterError(
            "address-without-cluster", "--address belongs to --engine ray: add that, or leave out --address"
        )
    return engine == RAY


def cluster_of(engine: str, address: str | None, workers: int) -> AbstractContextManager[Cluster | None]:
    """The cluster that was asked for, while the command needs it; None for the local engine."""
    if workers < 1:
        raise BadParameterError("bad-option", "--workers must be at least 1, not {workers}", workers=workers)
    if not uses_cluster(engine, address):
        return nullcontext(None)
    from tacit.engines.cluster.session import cluster

    return cluster(address, workers)
