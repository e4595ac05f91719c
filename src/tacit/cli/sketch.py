"""`tacit sketch`: noisy sums of private rows as a file, their merging, and a look into one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click
from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for, group_of
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.jobs import sketch as building
from tacit.jobs import sketch_merge as merging
from tacit.jobs.config import Config
from tacit.jobs.fields import AsJson, SketchFile
from tacit.jobs.sketch_merge import SketchMergeConfig
from tacit.jobs.sketched_rows import SketchConfig
from tacit.matching.artifact import content_digest, read_sketch
from tacit.matching.sketch import Sketch, described

BUILD_HELP = """Release a sketch of private rows: noisy sums of public features per public label.

One release, at one price; everything that is made of it later costs nothing. The labels must be public knowledge, or
declared so. Without a label column, public topics take their place.

Example: tacit sketch build tickets.csv --label-column intent --labels refund,delivery --epsilon 1 -o tickets.tacit

Example: tacit sketch build diary.txt --topics 64 --epsilon 1 -o diary.tacit
"""
MERGE_HELP = """Add up sketches of several sites that were built with the same options.

With --disjoint it is declared that no record is at two sites: the weakest promise of them holds. Otherwise a record may
be in all of them, and their budgets are composed. The card says which.

Example: tacit sketch merge north.tacit south.tacit --disjoint -o all.tacit
"""


def build(config: SketchConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = building.run(config, lambda done, total: bars.show("adding up", done, total))
    _show_release(result.sketch, str(config.output), shown)


def merge(config: SketchMergeConfig, shown: Quiet) -> None:
    _show_release(merging.run(config), str(config.output), shown)


def _show_release(sketch: Sketch, output: str, shown: Quiet) -> None:
    if not shown.quiet:
        error_console().print(f"{described(sketch)} -> {output}", markup=False)
        show_card(sketch.card, output_console())
    warn_if_nominal(sketch.card)


class SketchShowOptions(Config):
    """Which sketch is shown, and how."""

    job: ClassVar[str] = "sketch show"

    sketch: Annotated[
        SketchFile[Path],
        Field(description="A sketch made by 'tacit sketch build'."),
    ]
    as_json: AsJson = False


def show(options: SketchShowOptions) -> None:
    sketch = read_sketch(options.sketch)
    if options.as_json:
        click.echo(json.dumps(facts(sketch), ensure_ascii=False))
        return
    click.echo(f"noisy counts (standard deviation of the noise {sketch.count_deviation:,.1f}):")
    for label, count in zip(sketch.labels, sketch.counts.tolist(), strict=True):
        click.echo(f"{count:>12,.1f}  {label}")
    click.echo(
        f"{sketch.feature_map.dimension:,} features of each label, noise of deviation {sketch.noise_deviation:.4g} on "
        "every sum"
    )
    show_card(sketch.card, output_console())


def facts(sketch: Sketch) -> dict[str, Any]:
    """A sketch as plain values, without its sums."""
    return {
        "labels": list(sketch.labels),
        "counts": sketch.counts.tolist(),
        "count_deviation": sketch.count_deviation,
        "noise_deviation": sketch.noise_deviation,
        "features": sketch.feature_map.to_dict(),
        "digest": content_digest(sketch),
        "card": sketch.card.to_dict(),
    }


command = group_of(
    "sketch",
    [
        command_for("build", [SketchConfig, Quiet], build, help=BUILD_HELP),
        command_for("merge", [SketchMergeConfig, Quiet], merge, help=MERGE_HELP),
        command_for("show", [SketchShowOptions], show, help="The noisy counts of a sketch, and its card."),
    ],
    help="Sketches: noisy sums of private rows, released once, from which a corpus can be made anywhere.",
)
