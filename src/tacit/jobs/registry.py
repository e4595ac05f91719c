"""All jobs by the names that files of options and cards call them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from tacit.errors import BadInputError
from tacit.jobs.config import Config, read_mapping

JOBS: Final[dict[str, str]] = {
    "codebook": "tacit.jobs.codebook:CodebookConfig",
    "pool": "tacit.jobs.pool:PoolConfig",
    "sketch": "tacit.jobs.sketch:SketchConfig",
    "sketch merge": "tacit.jobs.sketch_merge:SketchMergeConfig",
    "evaluate": "tacit.jobs.evaluate:EvaluateConfig",
    "rewrite": "tacit.jobs.rewrite:RewriteConfig",
}
"""Name: module and configuration. The module has a function `run`, which takes the configuration."""


def config_class(job: str) -> type[Config]:
    """The configuration of a job."""
    if job not in JOBS:
        close = get_close_matches(job, JOBS, n=1)
        raise BadInputError(
            "no-such-job",
            "there is no job '{job}'{hint} The jobs are: {jobs}",
            job=job,
            hint=f"; did you mean '{close[0]}'?" if close else ".",
            jobs=", ".join(JOBS),
        )
    module, _, name = JOBS[job].partition(":")
    config: type[Config] = getattr(importlib.import_module(module), name)
    return config


def config_from(values: Mapping[str, Any]) -> Config:
    """The configuration that a file of options describes: `job` says of what.

    >>> config_from({"job": "rewrite", "input": "in.csv", "epsilon": 2}).job
    'rewrite'
    """
    job = values.get("job")
    if not isinstance(job, str):
        raise BadInputError(
            "no-job", 'the file does not say what it describes: begin it with job = "NAME" of {jobs}',
            jobs=", ".join(JOBS),
        )  # fmt: skip
    return config_class(job).from_mapping(values)


def config_of_file(path: Path) -> Config:
    """The configuration in a TOML or JSON file."""
    return config_from(read_mapping(path))


def run(config: Config) -> Any:
    """What the job of a configuration gives.

    >>> run(config_from({"job": "rewrite", "input": ["a good film"], "epsilon": 2})).facts.rows
    1
    """
    module = JOBS[config.job].partition(":")[0]
    return importlib.import_module(module).run(config)
