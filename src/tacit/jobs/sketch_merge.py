"""Sketches of several sites as one.

merged = tacit.jobs.sketch_merge.merge(["north.tacit", "south.tacit"], disjoint=True, output="all.tacit")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Force, Output
from tacit.matching.artifact import read_sketch, save_sketch
from tacit.matching.merging import merge_sketches
from tacit.matching.sketch import Sketch
from tacit.places import refuse_taken_file


class SketchMergeConfig(Config):
    """Sketches with the same features and labels, and whether their records are different ones."""

    job: ClassVar[str] = "sketch merge"

    sketches: Annotated[
        tuple[Path, ...],
        Field(min_length=2, description="Sketches made with the same options."),
        Option(Group.DATA, positional=True, metavar="SKETCH…"),
    ]
    output: Annotated[Output[Path], Field(description="The merged sketch; its card stands beside it.")]
    disjoint: Annotated[
        bool,
        Field(description="Declare that no record (or user) is in two of them; otherwise their budgets add up."),
        Option(Group.PRIVACY),
    ] = False
    force: Force = False


def run(config: SketchMergeConfig) -> Sketch:
    """The merged sketch, saved with its card."""
    refuse_taken_file(config.output, force=config.force)
    merged = merge_sketches([read_sketch(path) for path in config.sketches], disjoint=config.disjoint)
    return save_sketch(merged, config.output, force=config.force)


def merge(sketches: Sequence[str | Path], *, output: str | Path, **options: Any) -> Sketch:
    """The sum of sketches, written to a file; options as in `SketchMergeConfig`."""
    return run(SketchMergeConfig(sketches=tuple(map(Path, sketches)), output=Path(output), **options))
