"""Output of the commands that train: the plan, a bar, the card, the scores, and the next steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.reports import deliver
from tacit.cli.terminal import error_console, output_console, warn, warn_if_nominal
from tacit.errors import StoppedError
from tacit.jobs.fields import Quiet as QuietOption
from tacit.jobs.training.result import TrainingProgress, TrainingResult, VectorTrainingResult
from tacit.rounding import rounded_up
from tacit.training.plan import TrainingPlan
from tacit.training.task_registry import TASKS

if TYPE_CHECKING:
    from tacit.training.run import StepReport as Step


class QuietTraining(Quiet):
    """Whether a command shows anything but warnings and scores."""

    quiet: Annotated[QuietOption, Field(description="No progress bar and no card.")] = False


class TrainingBar(TrainingProgress):
    """A training on the terminal: its plan in a line, then a bar."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = error_console()
        self._quiet = quiet
        self._plan: TrainingPlan | None = None
        self._bars = Bars(shown=not quiet, stays=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.__exit__(kind, error, trace)

    def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
        if not self._quiet:
            for line in (plan_line(plan), *notes):
                self._console.print(line)
        self.begin(plan)

    def begin(self, plan: TrainingPlan) -> None:
        """Start the bar of a plan."""
        self._plan = plan
        self._bars.show("training", 0, plan.steps, "checking the gradients")

    def prepared(self, done: int, total: int) -> None:
        steps = None if self._plan is None else self._plan.steps
        self._bars.show("training", 0, steps, f"running the frozen layers once: {done:,} of {total:,} records")

    def stepped(self, now: Step) -> None:
        private = self._plan is not None and self._plan.private
        self._bars.show("training", now.step, now.steps, step_line(now, private=private))

    def searching(self) -> None:
        self._bars.show("training", 0, None, "searching: how many trials there are is secret, so no time is foretold")

    def remarked(self, message: str) -> None:
        self._console.print(message)

    def warned(self, message: str) -> None:
        warn(message)


def plan_line(plan: TrainingPlan) -> str:
    """Sampling and noise of a plan in words."""
    units, steps = plan.words
    noise = (
        f"noise {plan.multiplier:.3f} x the bound, delta {rounded_up(plan.delta)}" if plan.private else "without noise"
    )
    first = plan.batch_at(0)
    sizes = f"{plan.batch:,}" if first == plan.batch else f"{first:,} to {plan.batch:,}"
    return f"{plan.records:,} {units}, {plan.steps:,} {steps} of about {sizes}, {noise}"


def step_line(now: Step, *, private: bool) -> str:
    """A step in words."""
    spent = f", clipped {now.facts.shortened:.0%}, epsilon {rounded_up(now.epsilon, 3)}" if private else ""
    return f"step {now.step:,} of {now.steps:,}, loss {now.facts.loss:.3f}{spent}"


def shown_training(
    run: Callable[[Any, TrainingProgress], TrainingResult | VectorTrainingResult],
) -> Callable[[Any, QuietTraining], None]:
    """The command that trains with a bar, then shows the card and the scores."""

    def action(config: Any, shown: QuietTraining) -> None:
        with stoppable(config.output), TrainingBar(quiet=shown.quiet) as bar:
            result = run(config, bar)
        show_result(result, quiet=shown.quiet)

    return action


def show_result(result: TrainingResult | VectorTrainingResult, *, quiet: bool) -> None:
    """The card and the scores of a trained model. Of several processes only the first one speaks."""
    if not result.first:
        return
    if not quiet:
        if result.checked is not None:
            error_console().print(
                f"gradients by '{result.checked.engine}', exact to {rounded_up(result.checked.deviation, 1)}"
            )
        show_card(result.card, output_console())
        if isinstance(result, TrainingResult) and result.chosen:
            chosen = ", ".join(f"{name} {value}" for name, value in result.chosen.items())
            error_console().print(f"chosen: {chosen}")
    if result.scores is not None:
        deliver(result.scores, None, None, as_json=False, force=False)
    elif not quiet and result.task in TASKS:
        error_console().print(how_to_score(result.folder))
    warn_if_nominal(result.card)


def how_to_score(folder: Path, *, after_training: bool = True) -> str:
    """The hint how to get a score: none is computed on the private records, because it would reveal some of them."""
    at_once = " (--test ROWS does so right after training)" if after_training else ""
    return (
        f"No score yet: tacit predict {folder} ROWS --score compares with what is true of rows that are not private"
        f"{at_once}. A score on private rows is not covered by the card."
    )


@contextmanager
def stoppable(folder: Path) -> Iterator[None]:
    """Work that can be stopped with Ctrl-C and taken up again."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(
            "stopped-training",
            "stopped: repeat the command with {option.resume} to go on; {folder} holds the run",
            folder=folder,
        ) from None
