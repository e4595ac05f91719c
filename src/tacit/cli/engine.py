"""Where a command works: `--engine local` (this process and its workers) or `--engine ray` (a cluster)."""

from __future__ import annotations

from typing import Final

from tacit.errors import BadParameterError

LOCAL, RAY = "local", "ray"
ENGINES: Final = (LOCAL, RAY)
ENGINE_HELP: Final = (
    "'local' (this machine), or 'ray' (a cluster; reads folders of files and fsspec paths such as s3://)."
)
ADDRESS_HELP: Final = "With --engine ray: a running cluster ('auto', or HOST:PORT); by default one is started here."
WORKERS_HELP: Final = "With --engine ray: how many workers."


def uses_cluster(engine: str, address: str | None) -> bool:
    """Whether the job runs on a cluster."""
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
