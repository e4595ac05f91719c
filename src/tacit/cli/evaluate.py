"""`tacit evaluate`: what released texts are still good for."""

from __future__ import annotations

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.reports import ReportOptions
from tacit.jobs.evaluate import EvaluateConfig, run

HELP = """Measure what is left of the utility of released texts.

How similar they are to the originals, and how well a model trained on them works on original text, always beside
the floor (chance) and the ceiling (the originals themselves). Several files give a trade-off with the privacy that
their cards promise.

Example: tacit evaluate reviews.csv private.csv --label-column rating --html report.html
"""


def evaluate(config: EvaluateConfig, shown: ReportOptions) -> None:
    shown.check_files()
    with Bars(shown=not shown.quiet) as bars:
        report = run(config, bars.show)
    shown.deliver(report)


command = command_for("evaluate", [EvaluateConfig, ReportOptions], evaluate, help=HELP)
