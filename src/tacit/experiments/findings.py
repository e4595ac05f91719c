"""Published statements as expressions over the results, with a verdict: agree, disagree, undecided, not testable.

    task.score[mechanism=santext] increases with epsilon for each data
    task.score[mechanism=santext+] > task.score[mechanism=santext] for most data, epsilon
    task.score[mechanism=santext, epsilon=max] within 0.10 of task.score[mechanism=none] for each data
    attack.rate[epsilon=min] < 0.5

A value is STEP.MEASURE, with the axis values to look at in brackets (a|b: either; min, max: the smallest and largest
number of the axis), a number, share(...) of a value between its floor and its ceiling, or a sum of them (with spaces
around + and -). Everything that is neither in brackets nor named after `for each` is averaged, always the seeds. An
axis with several values in brackets that is named after `for each` as well runs over these values.

    >, <, >=, <=            the means stand so, in each group (`for each`) or in more than half of them (`for most`)
    within X of             they differ by at most X
    increases with AXIS     largest axis value above the smallest one, and Spearman's rank correlation at least 0.5
    decreases with AXIS     the same downward
    is flat with AXIS within X    largest and smallest mean differ by at most X

The verdict looks at the means, and at chance in the same way whichever side they are on: it has to be ruled out at 5
%, with standard errors over test items and, where there are several, seeds. We agree if the statement holds in every
group (in most) and clearly so; we disagree if it clearly fails in one (in half of them); otherwise the sample is too
small to tell, and the finding is undecided. How clear is clear depends on how many groups could have done it: that one
of a dozen fails by 1.96 standard errors is to be expected, so it has to be 2.87 there, whereas all of a dozen hardly
ever hold by 1.96 without a reason. These are the partial conjunction tests of Benjamini and Heller (2008), with Simes's
inequality: for r of n groups some i >= r of them must have p <= .05 (i - r + 1) / (n - r + 1). A score without an
interval and with one seed has no error and counts as exact, such as a number from an accountant: a difference between
two of them is always clear.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from statistics import NormalDist
from typing import Any, Literal

from tacit.errors import BadInputError
from tacit.experiments.config import Finding, Value
from tacit.experiments.plan import shown
from tacit.experiments.results import Number, Results, joint_error
from tacit.report import Light

Word = Literal["agree", "disagree", "undecided", "not testable"]
TESTED: tuple[Word, ...] = ("agree", "disagree")
LEAST_CORRELATION = 0.5
SIGNIFICANCE = 0.05

_SELECTION = re.compile(
    r"^(?P<share>share\()?(?P<step>[\w+-]+)\.(?P<measure>[^\[\]()]+?)(?:\[(?P<where>[^\]]*)\])?(?(share)\))$"
)
_SCOPE = r"(?: for (?P<scope>each|most) (?P<axes>.+))?$"
_TREND = re.compile(
    r"^(?P<left>.+?) (?P<how>increases|decreases|is flat) with (?P<axis>[\w ]+?)"
    rf"(?: within (?P<within>[\d.]+))?{_SCOPE}"
)
_NEAR = re.compile(rf"^(?P<left>.+?) within (?P<within>[\d.]+) of (?P<right>.+?){_SCOPE}")
_ORDER = re.compile(rf"^(?P<left>.+?) (?P<how>>=|<=|>|<) (?P<right>.+?){_SCOPE}")


@dataclass(frozen=True)
class Selection:
    """STEP.MEASURE[AXIS=VALUE, …], possibly as a share between floor and ceiling."""

    step: str
    measure: str
    where: Mapping[str, tuple[str, ...]]
    share: bool = False

    def varies(self, axis: str) -> bool:
        """Whether `for each` may run over an axis: one with a single value in brackets stays there."""
        return len(self.where.get(axis, ())) != 1


@dataclass(frozen=True)
class Expression:
    """A sum of selections and numbers, each with its sign."""

    terms: tuple[tuple[float, Selection | float], ...]
    text: str

    @property
    def selections(self) -> list[Selection]:
        return [term for _, term in self.terms if isinstance(term, Selection)]


@dataclass(frozen=True)
class Check:
    how: str
    left: Expression
    right: Expression | None
    axis: str | None
    within: float
    scope: str
    groups: tuple[str, ...]

    @property
    def expressions(self) -> list[Expression]:
        return [self.left] if self.right is None else [self.left, self.right]


@dataclass(frozen=True)
class Verdict:
    finding: Finding
    word: Word
    detail: str
    leaning: bool | None = None
    """Of an undecided one: whether the means stand as published."""

    @property
    def shown(self) -> str:
        """The verdict in words: only with somebody else one can agree."""
        return (
            {"agree": "holds", "disagree": "does not hold"}.get(self.word, self.word)
            if self.finding.ours
            else self.word
        )

    @property
    def light(self) -> Light:
        if self.word == "agree":
            return Light.GREEN
        if self.word not in TESTED:
            return Light.NONE
        return Light.AMBER if self.finding.explanation else Light.RED


# Reading ----------------------------------------------------------------------------------------------------------


def parse_expression(text: str) -> Expression:
    pieces = re.split(r" ([+-]) ", text.strip())
    signs = [1.0, *(1.0 if sign == "+" else -1.0 for sign in pieces[1::2])]
    return Expression(
        tuple((s, _term(piece.strip())) for s, piece in zip(signs, pieces[::2], strict=True)), text.strip()
    )


def _term(text: str) -> Selection | float:
    try:
        return float(text)
    except ValueError:
        pass
    found = _SELECTION.match(text)
    if found is None:
        raise BadInputError(
            f"'{text}' is no value: write STEP.MEASURE, such as task.score[mechanism=santext], or a number"
        )
    where = {}
    for pair in (found["where"] or "").split(","):
        if pair.strip():
            axis, equals, value = pair.partition("=")
            if not equals:
                raise BadInputError(f"'{pair.strip()}' in '{text}' must have the form AXIS=VALUE")
            where[axis.strip()] = tuple(one.strip() for one in value.split("|"))
    return Selection(found["step"], found["measure"].strip(), where, share=bool(found["share"]))


def parse_check(text: str) -> Check:
    text = " ".join(text.split())
    for pattern in (_TREND, _NEAR, _ORDER):
        if found := pattern.match(text):
            parts = found.groupdict()
            groups = tuple(axis.strip() for axis in (parts["axes"] or "").split(",") if axis.strip())
            how = parts.get("how") or "within"
            if how == "is flat" and not parts["within"]:
                raise BadInputError(f"the check '{text}' needs 'within' and a number: how flat is flat?")
            if how in ("increases", "decreases") and parts["within"]:
                raise BadInputError(f"the check '{text}' cannot have 'within': leave it out")
            right = parse_expression(parts["right"]) if "right" in parts else None
            return Check(how, parse_expression(parts["left"]), right, parts.get("axis"),
                         _distance(parts.get("within"), text), parts["scope"] or "each", groups)  # fmt: skip
    raise BadInputError(
        f"the check '{text}' is not understood: write VALUE > VALUE, VALUE within X of VALUE, or VALUE increases with "
        "AXIS"
    )


def _distance(within: str | None, check: str) -> float:
    try:
        return float(within or 0.0)
    except ValueError:
        raise BadInputError(
            f"the check '{check}' has '{within}' after 'within', which is no number: write one, such as 0.05"
        ) from None


def check_names(
    expressions: Iterable[Expression], axes_of: Mapping[str, Sequence[str]], extra: Iterable[str] = ()
) -> None:
    """Whether the steps and axes of expressions exist, and the axes to group by in all of them."""
    for expression in expressions:
        for one in expression.selections:
            if one.step not in axes_of:
                close = get_close_matches(one.step, axes_of, n=1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                raise BadInputError(f"'{expression.text}' names the step '{one.step}', which does not exist{hint}")
            known = axes_of[one.step]
            for axis in (*one.where, *extra):
                if axis not in known:
                    raise BadInputError(
                        f"'{expression.text}' is asked about the axis '{axis}', but '{one.step}' has {', '.join(known)}"
                    )


# Evaluating -------------------------------------------------------------------------------------------------------


class NotTestableError(Exception):
    """A cell that the check needs is missing."""


def evaluate(expression: Expression, results: Results, at: Mapping[str, Value]) -> Number:
    """The value of an expression in one group."""
    value, error = 0.0, math.nan
    floor = ceiling = math.nan
    outside = False
    for sign, term in expression.terms:
        if isinstance(term, float):
            value += sign * term
            continue
        number = _number(term, results, at)
        value += sign * number.value
        error = joint_error([error, number.error])
        floor, ceiling, outside = number.floor, number.ceiling, outside or number.outside
    only = len(expression.terms) == 1
    return Number(value, error, floor if only else math.nan, ceiling if only else math.nan, outside=outside)


def where_of(one: Selection, results: Results, at: Mapping[str, Value]) -> dict[str, Any]:
    """The axis values that a selection looks at in a group. An axis that its cells do not have says nothing about them:
    the text without privacy has no epsilon."""
    where: dict[str, Any] = {}
    for axis, wanted in one.where.items():
        where[axis] = _values(one, axis, wanted, results, {**where, **_known(one, results, where, at)})
        if axis in at and one.varies(axis):
            where[axis] = [value for value in where[axis] if value == at[axis]]
    return {**_known(one, results, where, at), **where}


def _known(one: Selection, results: Results, where: Mapping[str, Any], at: Mapping[str, Value]) -> dict[str, Any]:
    there = {axis for cell in results.of(one.step, where) for axis in cell.axes}
    return {axis: value for axis, value in at.items() if axis in there and axis not in one.where}


def _number(one: Selection, results: Results, at: Mapping[str, Value]) -> Number:
    where = where_of(one, results, at)
    cells = results.of(one.step, where)
    place = f"{one.step}{f'[{_where(where)}]' if where else ''}"
    if not cells:
        raise NotTestableError(f"{place} was not part of this run")
    if broken := [cell for cell in cells if not cell.finished]:
        raise NotTestableError(f"{len(broken)} of {len(cells)} cells of {place} have no result")
    found = results.number(one.step, one.measure, where)
    if found is None:
        raise NotTestableError(f"{place} has no '{one.measure}'")
    if not one.share:
        return found
    ceiling = results.reference(one.step, one.measure, where)
    gap = ceiling - found.floor
    if math.isnan(gap) or gap <= 0:
        raise NotTestableError(f"{place} has no floor and ceiling that differ")
    return Number((found.value - found.floor) / gap, found.error / gap, 0.0, 1.0, outside=found.outside)


def _values(
    one: Selection, axis: str, wanted: Sequence[str], results: Results, where: Mapping[str, Any]
) -> list[Value]:
    known = results.values(one.step, axis, where)
    numbers = [v for v in known if isinstance(v, int | float) and not isinstance(v, bool)]
    found: list[Value] = []
    for text in wanted:
        if text in ("min", "max") and numbers:
            found.append(min(numbers) if text == "min" else max(numbers))
        else:
            found += [value for value in known if shown(value) == plain_value(text)] or [text]
    return found


def plain_value(text: str) -> str:
    """2.0 means the same as 2."""
    try:
        return shown(float(text))
    except ValueError:
        return text


def _where(where: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{axis}={'|'.join(map(shown, v)) if isinstance(v, list) else shown(v)}" for axis, v in where.items()
    )


def groups_of(check: Check, results: Results) -> list[dict[str, Value]]:
    """Every combination of values of the axes after `for each` for which there is a cell on all sides."""
    if not check.groups:
        return [{}]
    selections = [one for expression in check.expressions for one in expression.selections]
    choices = []
    for axis in check.groups:
        having = [results.values(one.step, axis, where_of(one, results, {})) for one in selections
                  if one.varies(axis)]  # fmt: skip
        having = [values for values in having if values]
        if not having:
            raise NotTestableError(f"nothing varies over '{axis}' in this run")
        choices.append([v for v in having[0] if all(v in values for values in having)])
    found = [dict(zip(check.groups, values, strict=True)) for values in product(*choices)]
    return [at for at in found if all(_there(one, results, at) for one in selections)]


def _there(one: Selection, results: Results, at: Mapping[str, Value]) -> bool:
    return bool(results.of(one.step, where_of(one, results, at)))


@dataclass(frozen=True)
class Outcome:
    """One group: whether the statement holds there, how it looks in numbers, and by how many standard errors."""

    holds: bool
    text: str
    errors: float


def judge(finding: Finding, results: Results) -> Verdict:
    """The verdict on one finding."""
    if finding.check is None:
        return Verdict(finding, "not testable", finding.untestable)
    check = parse_check(finding.check)
    try:
        places = groups_of(check, results)
        if not places:
            raise NotTestableError("no group has cells on all sides")
        outcomes = [(at, _outcome(check, results, at)) for at in places]
    except NotTestableError as error:
        return Verdict(finding, "not testable", f"{error}.")
    holding = [outcome.holds for _, outcome in outcomes]
    told = "; ".join(f"{_group(at)}{outcome.text}" for at, outcome in outcomes[:6])
    if len(outcomes) > 1:
        told = f"{sum(holding)} of {len(holding)} groups. {told}{' …' if len(outcomes) > 6 else ''}"
    word, leaning = _word(check, [outcome for _, outcome in outcomes])
    return Verdict(finding, word, told, leaning)


def _word(check: Check, outcomes: Sequence[Outcome]) -> tuple[Word, bool | None]:
    """The verdict over all groups, and for an undecided one the side on which the means are."""
    everywhere = check.scope == "each"
    enough = len(outcomes) if everywhere else len(outcomes) // 2 + 1
    too_many = 1 if everywhere else len(outcomes) - enough + 1
    if _clearly([outcome.errors for outcome in outcomes if outcome.holds], enough, len(outcomes)):
        return "agree", None
    if _clearly([outcome.errors for outcome in outcomes if not outcome.holds], too_many, len(outcomes)):
        return "disagree", None
    return "undecided", sum(outcome.holds for outcome in outcomes) >= enough


def _clearly(errors: Sequence[float], wanted: int, groups: int) -> bool:
    """Whether chance is ruled out for at least so many of the groups; the errors are of those that stand this way."""
    chances = sorted(2 * NormalDist().cdf(-found) for found in errors)
    return any(
        chance <= SIGNIFICANCE * (place - wanted + 1) / (groups - wanted + 1)
        for place, chance in enumerate(chances, start=1)
        if place >= wanted
    )


def _group(at: Mapping[str, Value]) -> str:
    return f"{', '.join(shown(value) for value in at.values())}: " if at else ""


def _outcome(check: Check, results: Results, at: Mapping[str, Value]) -> Outcome:
    if check.axis is not None:
        return _trend(check, results, at)
    assert check.right is not None
    left, right = evaluate(check.left, results, at), evaluate(check.right, results, at)
    difference, error = left.value - right.value, joint_error([left.error, right.error])
    holds = {
        ">": difference > 0, "<": difference < 0, ">=": difference >= 0, "<=": difference <= 0,
        "within": abs(difference) <= check.within,
    }[check.how]  # fmt: skip
    gap = abs(difference) if check.how != "within" else abs(abs(difference) - check.within)
    told = f"{_measured(check.left, left)} and {_measured(check.right, right)}"
    return Outcome(holds, told, _in_errors(gap, error))


def _measured(expression: Expression, number: Number) -> str:
    """The value as it was measured, and beside it what the check adds to it."""
    added = sum(sign * term for sign, term in expression.terms if isinstance(term, float))
    if not added or not expression.selections:
        return f"{number.value:.3f}"
    return f"{number.value - added:.3f} {'+' if added > 0 else '-'} {abs(added):g}"


def _in_errors(gap: float, error: float) -> float:
    """No error at all (NaN) is an exact number; two scores at their floor are not clearly anything."""
    if math.isnan(error):
        return math.inf
    return gap / error if error else (math.inf if gap else 0.0)


def _trend(check: Check, results: Results, at: Mapping[str, Value]) -> Outcome:
    assert check.axis is not None
    axis = check.axis
    first = check.left.selections[0]
    values = [v for v in results.values(first.step, axis, where_of(first, results, at)) if isinstance(v, int | float)]
    points: list[tuple[Value, Number]] = []
    for value in values:
        here = {**at, axis: value}
        if all(_there(one, results, here) for one in check.left.selections):
            points.append((value, evaluate(check.left, results, here)))
    if len(points) < 2:
        raise NotTestableError(f"a trend needs at least two values of '{axis}'")
    means = [number.value for _, number in points]
    told = " → ".join(f"{mean:.3f}" for mean in means)
    if check.how == "is flat":
        low, high = (choose((number for _, number in points), key=lambda one: one.value) for choose in (min, max))
        spread = high.value - low.value
        errors = _in_errors(abs(spread - check.within), joint_error([low.error, high.error]))
        return Outcome(spread <= check.within, told, errors)
    start, end = points[0][1], points[-1][1]
    sign = 1.0 if check.how == "increases" else -1.0
    rise = sign * (end.value - start.value)
    holds = rise > 0 and sign * rank_correlation(means) >= LEAST_CORRELATION
    errors = _in_errors(abs(rise), joint_error([start.error, end.error]))
    # The ends stand as stated, but the values between them do not: no way to tell whether chance did that.
    return Outcome(holds, told, 0.0 if rise > 0 and not holds and math.isfinite(errors) else errors)


def rank_correlation(values: Sequence[float], others: Sequence[float] | None = None) -> float:
    """Spearman's correlation of values with others, by default with their order; ties share their ranks, and no spread
    is no correlation."""
    from scipy.stats import rankdata

    first, second = (rankdata(some) for some in (values, range(len(values)) if others is None else others))
    mean = (len(values) + 1) / 2
    above = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    below = math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return float(above / below) if below else 0.0


def judge_all(results: Results) -> list[Verdict]:
    return [judge(finding, results) for finding in results.findings]


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many published findings hold, and how many the sample is too small for; apart from them, those of ours."""
    published, own = (of_source(verdicts, ours=ours) for ours in (False, True))
    parts = [_counted(published, "testable published findings agree")] if published or not own else []
    parts += [_counted(own, "testable findings of our own hold")] if own else []
    return "; ".join(parts)


def of_source(verdicts: Sequence[Verdict], *, ours: bool) -> list[Verdict]:
    """Those on published statements, or those on our own."""
    return [verdict for verdict in verdicts if verdict.finding.ours is ours]


def _counted(verdicts: Sequence[Verdict], what: str) -> str:
    agreed, tested = sum(v.word == "agree" for v in verdicts), sum(v.word in TESTED for v in verdicts)
    undecided = [verdict for verdict in verdicts if verdict.word == "undecided"]
    share = f" ({agreed / tested:.0%})" if tested else ""
    leaning = sum(bool(verdict.leaning) for verdict in undecided)
    chance = f", {len(undecided)} undecided (chance could have made the difference; {leaning} lean this way)"
    told = f"{agreed} of {tested} {what}{share}{chance if undecided else ''}"
    return f"{told}, {len(verdicts) - tested - len(undecided)} not testable"
