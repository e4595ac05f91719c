"""Which pools of public sentences fit a released sketch; the private rows are not needed, and nothing is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from tacit.jobs.config import Config
from tacit.jobs.fields import Pools, SketchFile, SyntheticRowCount
from tacit.matching.artifact import read_sketch
from tacit.matching.pool import bundled_pools, load_pool
from tacit.matching.pool_fit import PoolFit, fitted_pools
from tacit.progress import WorkProgress


class PoolFitConfig(Config):
    """A sketch, and the pools that are compared."""

    job: ClassVar[str] = "pool fit"

    sketch: Annotated[SketchFile[Path], Field(description="A sketch made by 'tacit sketch build' or 'synthesize'.")]
    pools: Annotated[
        Pools,
        Field(description="Pools to compare: a name of 'tacit pool list', or a file; may be repeated. By default all "
              "that come with Tacit."),
    ] = ()  # fmt: skip
    rows: Annotated[
        SyntheticRowCount[int | None],
        Field(description="Rows that are drawn for the comparison; by default as many as 'tacit synthesize' draws."),
    ] = None


def run(config: PoolFitConfig, progress: WorkProgress | None = None) -> PoolFit:
    """How well the pools and their mixes fit the sketch."""
    pools = [load_pool(name) for name in config.pools or bundled_pools()]
    return fitted_pools(read_sketch(config.sketch), pools, rows=config.rows, progress=progress)
