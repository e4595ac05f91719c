"""Statements about the results of an experiment, as Python functions that return a judgment.

They stand in a file beside the experiment (`santext_findings.py` beside `santext.toml`):

    from tacit.experiments.findings import Findings, Judgment, Scores
    from tacit.experiments.quantities import score

    findings = Findings()

    @findings.says("SanText gets more useful with epsilon, on every task", source="Yue et al. 2021, table 1")
    def santext_gets_more_useful(scores: Scores) -> Judgment:
        return scores.increases(score("task.score", mechanism="santext"), along="epsilon", each=["data"])

`scores.frame` is a pandas frame with a row for each score of each cell. The comparisons of `Scores` take quantities of
it (`tacit.experiments.quantities`), in every group of cells (`each`) or in more than half of them (`most`), and rule
out chance at 5 % (`tacit.experiments.chance`): a statement agrees if it clearly holds in every group (in most), it
disagrees if it clearly fails in one (in half of them), and otherwise the sample is too small to tell. A score without
an interval and with one seed has no error and counts as exact, such as a number from an accountant.
"""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pandas as pd

from tacit.errors import BadInputError, place_of
from tacit.experiments.chance import Number, chance_ruled_out, in_errors, joint_error, rank_correlation
from tacit.experiments.declared import Value, shown
from tacit.experiments.evaluation import NotTestableError, evaluate, groups, is_there, place_in
from tacit.experiments.quantities import Quantity, ScoreTerm, quantity_of
from tacit.experiments.results import Results
from tacit.experiments.verdicts import FindingVerdict, Judgment, Word, all_of, not_testable

__all__ = [
    "Comparison",
    "ExperimentFinding",
    "Findings",
    "Judgment",
    "Relation",
    "Scores",
    "all_of",
    "judge_all",
    "load_findings",
]

LEAST_CORRELATION: Final = 0.5
GROUPS_IN_DETAIL: Final = 6


class Relation(StrEnum):
    """How two quantities, or the values of one along an axis, stand to each other."""

    ABOVE = ">"
    BELOW = "<"
    AT_LEAST = ">="
    AT_MOST = "<="
    NEAR = "within"
    INCREASES = "increases"
    DECREASES = "decreases"
    FLAT = "is flat"


@dataclass(frozen=True)
class Comparison:
    """A statement about scores, in a form that can be checked.

    right    what the left quantity is compared with; None for a trend along an axis
    along    the axis of a trend
    within   how far two quantities, or the ends of a flat line, may lie apart
    over     the axes whose values make the groups
    most     whether it is to hold in more than half of the groups, or in each
    """

    order: Relation
    left: Quantity
    right: Quantity | None = None
    along: str | None = None
    within: float = 0.0
    over: tuple[str, ...] = ()
    most: bool = False

    @property
    def quantities(self) -> list[Quantity]:
        return [self.left] if self.right is None else [self.left, self.right]

    @property
    def scores(self) -> list[ScoreTerm]:
        return [score for quantity in self.quantities for score in quantity.scores]

    def __str__(self) -> str:
        where = f" for {'most' if self.most else 'each'} {', '.join(self.over)}" if self.over else ""
        if self.along is not None:
            within = f" within {self.within:g}" if self.order is Relation.FLAT else ""
            return f"{self.left} {self.order.value} with {self.along}{within}{where}"
        order = f"within {self.within:g} of" if self.order is Relation.NEAR else self.order.value
        return f"{self.left} {order} {self.right}{where}"


class Scores(ABC):
    """The scores of an experiment, and comparisons of them."""

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """A row for each score of each cell (`Results.frame`); without rows before anything has run."""

    @abstractmethod
    def judged(self, comparison: Comparison) -> Judgment:
        """The judgment on a comparison."""

    def above(
        self, left: Quantity, right: Quantity | float, *, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the left mean is larger."""
        return self._compared(Relation.ABOVE, left, right, each, most)

    def below(
        self, left: Quantity, right: Quantity | float, *, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the left mean is smaller."""
        return self._compared(Relation.BELOW, left, right, each, most)

    def at_least(
        self, left: Quantity, right: Quantity | float, *, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the left mean is not smaller."""
        return self._compared(Relation.AT_LEAST, left, right, each, most)

    def at_most(
        self, left: Quantity, right: Quantity | float, *, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the left mean is not larger."""
        return self._compared(Relation.AT_MOST, left, right, each, most)

    def near(
        self, left: Quantity, right: Quantity | float, *, within: float, each: Sequence[str] = (),
        most: Sequence[str] = (),
    ) -> Judgment:  # fmt: skip
        """Whether the means differ by at most `within`."""
        return self._compared(Relation.NEAR, left, right, each, most, within)

    def increases(
        self, quantity: Quantity, *, along: str, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the mean at the largest value of an axis is above that at the smallest, and Spearman's rank
        correlation at least 0.5."""
        return self.judged(Comparison(Relation.INCREASES, quantity, None, along, 0.0, (*each, *most), bool(most)))

    def decreases(
        self, quantity: Quantity, *, along: str, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """The same downward."""
        return self.judged(Comparison(Relation.DECREASES, quantity, None, along, 0.0, (*each, *most), bool(most)))

    def is_flat(
        self, quantity: Quantity, *, along: str, within: float, each: Sequence[str] = (), most: Sequence[str] = ()
    ) -> Judgment:
        """Whether the largest and smallest mean along an axis differ by at most `within`."""
        return self.judged(Comparison(Relation.FLAT, quantity, None, along, within, (*each, *most), bool(most)))

    def _compared(
        self, order: Relation, left: Quantity, right: Quantity | float, each: Sequence[str], most: Sequence[str],
        within: float = 0.0,
    ) -> Judgment:  # fmt: skip
        return self.judged(Comparison(order, left, quantity_of(right), None, within, (*each, *most), bool(most)))


class MeasuredScores(Scores):
    """The scores of a run."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @property
    def frame(self) -> pd.DataFrame:
        return self._results.frame

    def judged(self, comparison: Comparison) -> Judgment:
        try:
            outcomes = self.outcomes(comparison)
        except NotTestableError as error:
            return not_testable(f"{error}.", str(comparison))
        detail = "; ".join(f"{_group(at)}{outcome.text}" for at, outcome in outcomes[:GROUPS_IN_DETAIL])
        if len(outcomes) > 1:
            holding = sum(outcome.holds for _, outcome in outcomes)
            more = " …" if len(outcomes) > GROUPS_IN_DETAIL else ""
            detail = f"{holding} of {len(outcomes)} groups. {detail}{more}"
        word, leaning = _word([outcome for _, outcome in outcomes], most=comparison.most)
        return Judgment(word=word, detail=detail, leaning=leaning, check=str(comparison))

    def outcomes(self, comparison: Comparison) -> list[tuple[dict[str, Value], GroupOutcome]]:
        """Each group of a comparison and how it stands there."""
        places = groups(comparison.scores, comparison.over, self._results)
        return [(at, _outcome(comparison, self._results, at)) for at in places]


# One group --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupOutcome:
    """One group: whether the statement holds there, how it looks in numbers, and by how many standard errors.

    difference   left minus right, or the last value minus the first of a trend, with its standard error
    """

    holds: bool
    text: str
    errors: float
    difference: Number


def _word(outcomes: Sequence[GroupOutcome], *, most: bool) -> tuple[Word, bool | None]:
    """The verdict over all groups, and for an undecided one the side on which the means are."""
    enough = len(outcomes) // 2 + 1 if most else len(outcomes)
    too_many = len(outcomes) - enough + 1 if most else 1
    if chance_ruled_out([outcome.errors for outcome in outcomes if outcome.holds], enough, len(outcomes)):
        return Word.AGREE, None
    if chance_ruled_out([outcome.errors for outcome in outcomes if not outcome.holds], too_many, len(outcomes)):
        return Word.DISAGREE, None
    return Word.UNDECIDED, sum(outcome.holds for outcome in outcomes) >= enough


def _group(at: Mapping[str, Value]) -> str:
    return f"{group_name(at)}: " if at else ""


def group_name(at: Mapping[str, Value]) -> str:
    """A group by the values of its axes."""
    return ", ".join(shown(value) for value in at.values())


def _outcome(comparison: Comparison, results: Results, at: Mapping[str, Value]) -> GroupOutcome:
    if comparison.right is None:
        return _trend(comparison, results, at)
    left, right = evaluate(comparison.left, results, at), evaluate(comparison.right, results, at)
    difference, error = left.value - right.value, joint_error([left.error, right.error])
    holds = {
        Relation.ABOVE: difference > 0, Relation.BELOW: difference < 0, Relation.AT_LEAST: difference >= 0,
        Relation.AT_MOST: difference <= 0, Relation.NEAR: abs(difference) <= comparison.within,
    }[comparison.order]  # fmt: skip
    gap = abs(abs(difference) - comparison.within) if comparison.order is Relation.NEAR else abs(difference)
    measured = f"{_measured(comparison.left, left)} and {_measured(comparison.right, right)}"
    return GroupOutcome(holds, measured, in_errors(gap, error), Number(difference, error))


def _measured(quantity: Quantity, number: Number) -> str:
    """The value as it was measured, and beside it what the comparison adds to it."""
    added = quantity.added
    if not added or not quantity.scores:
        return f"{number.value:.3f}"
    return f"{number.value - added:.3f} {'+' if added > 0 else '-'} {abs(added):g}"


def _trend(comparison: Comparison, results: Results, at: Mapping[str, Value]) -> GroupOutcome:
    numbers = _along(comparison, results, at)
    means = [number.value for number in numbers]
    text = " → ".join(f"{mean:.3f}" for mean in means)
    if comparison.order is Relation.FLAT:
        low, high = min(numbers, key=lambda number: number.value), max(numbers, key=lambda number: number.value)
        spread = high.value - low.value
        error = joint_error([low.error, high.error])
        errors = in_errors(abs(spread - comparison.within), error)
        return GroupOutcome(spread <= comparison.within, text, errors, Number(spread, error))
    start, end = numbers[0], numbers[-1]
    sign = 1.0 if comparison.order is Relation.INCREASES else -1.0
    rise = sign * (end.value - start.value)
    holds = rise > 0 and sign * rank_correlation(means) >= LEAST_CORRELATION
    error = joint_error([start.error, end.error])
    errors = in_errors(abs(rise), error)
    # The ends stand as stated, but the values between them do not: no way to tell whether chance did that.
    undecided = rise > 0 and not holds and math.isfinite(errors)
    return GroupOutcome(holds, text, 0.0 if undecided else errors, Number(end.value - start.value, error))


def _along(comparison: Comparison, results: Results, at: Mapping[str, Value]) -> list[Number]:
    """The values of a quantity along the axis of a trend."""
    axis, scores = str(comparison.along), comparison.left.scores
    values = results.values(scores[0].step, axis, place_in(scores[0], results, at))
    places = [{**at, axis: value} for value in values if isinstance(value, int | float)]
    numbers = [
        evaluate(comparison.left, results, place)
        for place in places
        if all(is_there(score, results, place) for score in scores)
    ]
    if len(numbers) < 2:
        raise NotTestableError(f"a trend needs at least two values of '{axis}'")
    return numbers


# Findings ---------------------------------------------------------------------------------------------------------

Judge = Callable[[Scores], Judgment]


@dataclass(frozen=True)
class ExperimentFinding:
    """A statement, where it stands, and the function that judges it; see `FindingVerdict` for the rest."""

    statement: str
    source: str
    judge: Judge
    ours: bool = False
    explanation: str = ""
    mixed: str = ""

    def verdict(self, scores: Scores) -> FindingVerdict:
        """The judgment on some scores, with the statement."""
        judgment = self.judge(scores)
        return FindingVerdict(
            statement=self.statement,
            source=self.source,
            ours=self.ours,
            explanation=self.explanation,
            mixed=self.mixed,
            **judgment.model_dump(),
        )


class Findings(list[ExperimentFinding]):
    """The findings of one experiment, in the order of its file."""

    def says(
        self, statement: str, *, source: str, ours: bool = False, explanation: str = "", mixed: str = ""
    ) -> Callable[[Judge], Judge]:
        """Adds the function below it as the judge of a statement.

        ours          nobody has published it: it is counted apart
        explanation   why we do not agree, where that is known; needed for a disagreement
        mixed         why epsilons that mean different things are compared, where they are
        """

        def add(judge: Judge) -> Judge:
            self.append(ExperimentFinding(statement, source, judge, ours, explanation, mixed))
            return judge

        return add

    def not_testable(self, statement: str, *, source: str, reason: str, ours: bool = False) -> None:
        """Adds a statement that no run can check, with the reason."""
        self.append(ExperimentFinding(statement, source, lambda _: not_testable(reason), ours))


def judge_all(findings: Sequence[ExperimentFinding], results: Results) -> tuple[FindingVerdict, ...]:
    """The verdicts on all findings of an experiment."""
    scores = MeasuredScores(results)
    return tuple(finding.verdict(scores) for finding in findings)


def findings_file(experiment_file: Path) -> Path:
    """Where the findings of an experiment stand, if it has some."""
    return experiment_file.with_name(f"{experiment_file.stem}_findings.py")


def load_findings(experiment_file: Path) -> Findings:
    """The findings beside an experiment file; none where there is no such file."""
    path = findings_file(experiment_file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        return Findings()
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInputError(
            "findings-fail",
            "the findings of the experiment in {path} cannot be loaded ({place})",
            path=path,
            place=place_of(error),
        ) from error
    findings = getattr(module, "findings", None)
    if not isinstance(findings, Findings):
        raise BadInputError(
            "no-findings",
            "{path} has no 'findings': add findings = Findings(), or rename the file",
            path=path,
        )
    return findings
