"""`tacit train selective`: learn the harmless part of texts without noise, and the sensitive places privately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import click
from pydantic import Field

from tacit.cli.generated import command_for
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.cli.training_display import QuietTraining, TrainingBar, how_to_score, stoppable
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.selective import SelectiveConfig, SelectiveProgress, redacted_texts, run
from tacit.training.plan import TrainingPlan

if TYPE_CHECKING:
    from tacit.training.redaction import Redacted
    from tacit.training.run import StepReport as Step

HELP = """Fine-tune twice: on redacted text without noise, then on the original text under differential privacy.

The promise covers what was redacted, and nothing else: a name that the detector misses is learned without any
protection. '--first public' and '--first private' keep the promise to whole records.

Example: tacit train selective letters.csv --sensitive patterns --epsilon 3 -o writer
"""


class LookOptions(Config):
    """Whether redacted texts are only looked at."""

    job: ClassVar[str] = "look"

    show: Annotated[
        int, Field(ge=0, description="Only show so many redacted texts (private), and stop."), Option(Group.RUN)
    ] = 0


def selective(config: SelectiveConfig, look: LookOptions, shown: QuietTraining) -> None:
    if look.show:
        for text in redacted_texts(config, look.show):
            click.echo(text)
        return
    with stoppable(config.output), PhaseBars(quiet=shown.quiet) as bars:
        result = run(config, bars)
    if not shown.quiet:
        show_card(result.card, output_console())
        error_console().print(how_to_score(result.folder, after_training=False))
    warn_if_nominal(result.card)


class PhaseBars(TrainingBar, SelectiveProgress):
    """How much was redacted, in a line, and a bar for each phase."""

    def redacted(self, redacted: Redacted) -> None:
        if not self._quiet:
            click.echo(
                f"redacted: {redacted.removed:,} of {redacted.tokens:,} words ({redacted.share:.1%}) in "
                f"{redacted.touched:,} of {len(redacted.rows):,} texts; look at some with --show 20 (for your eyes "
                "only)",
                err=True,
            )

    def phases_planned(self, first: TrainingPlan, second: TrainingPlan) -> None:
        for phase, plan in ((1, first), (2, second)):
            self._bars.show(f"phase {phase}", 0, plan.steps)

    def phase_stepped(self, phase: int, now: Step) -> None:
        line = f"phase {phase}: step {now.step:,} of {now.steps:,}, loss {now.facts.loss:.3f}"
        self._bars.show(f"phase {phase}", now.step, now.steps, line)


command = command_for("selective", [SelectiveConfig, LookOptions, QuietTraining], selective, help=HELP)
