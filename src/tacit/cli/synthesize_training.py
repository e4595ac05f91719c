"""`tacit synthesize --by training`: a model learns to write like the private rows, and writes others."""

from __future__ import annotations

import click
from rich.console import Console

from tacit.cli.generated import command_for
from tacit.cli.rendering import show_card
from tacit.cli.synthesize_prompting import stoppable
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.cli.training_display import QuietTraining, TrainingBar, plan_line
from tacit.jobs.synthesize_training import SynthesisProgress, SyntheticRows, TrainedSynthesisConfig, run
from tacit.training.plan import TrainingPlan

HELP = """Write synthetic rows: text with labels that may be shared, from a model trained under differential privacy.

Budget is spent on the model and on the label counts; writing costs nothing, so a kept model writes any amount.

Example: tacit synthesize --by training reviews.csv --label-column stars --epsilon 3 -n 1000 -o synthetic.csv

Example: tacit synthesize --by training --from-model synthetic-model -n 5000 -o more.csv
"""


def synthesize(config: TrainedSynthesisConfig, shown: QuietTraining) -> None:
    with stoppable(), SynthesisBar(quiet=shown.quiet) as bar:
        made = run(config, bar)
    if made.report is not None:
        for finding in made.report.findings:
            click.echo(f"{finding.light.word}: {finding.name}: {finding.sentence}", err=True)
        click.echo(f"report: {config.check} (private: it speaks of the private rows; readable by you only)", err=True)
    if not shown.quiet:
        say(made, error_console())
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


class SynthesisBar(TrainingBar, SynthesisProgress):
    """The plan of the training in a line, a bar for it, and one for each work after it."""

    def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
        if not self._quiet:
            self._console.print(", ".join((plan_line(plan), *notes)))
        self.begin(plan)

    def worked(self, what: str, done: int, total: int) -> None:
        self._bars.show(what, done, total)


def say(made: SyntheticRows, console: Console) -> None:
    """Print the numbers of written, refused and missing rows."""
    refused = ", ".join(f"{count:,} {reason}" for reason, count in sorted(made.refused.items()))
    console.print(
        f"{len(made):,} rows -> {made.output}; model: {made.folder}" + (f"; refused: {refused}" if refused else ""),
        markup=False,
    )
    if made.missing:
        console.print(
            f"{sum(made.missing.values()):,} rows of {len(made.missing):,} labels are missing: their texts did not "
            "pass the filters",
            markup=False,
        )


command = command_for("training", [TrainedSynthesisConfig, QuietTraining], synthesize, help=HELP)
