"""The sketch: sums of public features per public label, released once with noise. The only private step of matching.

    S_c = sum over the rows x of label c of (phi(x), a)            phi: `tacit.matching.features`, whole numbers
    released: the nearest multiple of a public step to  S_c + sigma Z,  Z exactly normal, independent in every number

Guarantee: (epsilon, delta)-differential privacy in the central model, for adding or removing one record (or one user
with all rows). Proof: one record moves all sums together by at most 1 in Euclidean length (theorem in
`tacit.matching.features`; for a user by `tacit.matching.sums`), so this is one Gaussian mechanism of sensitivity 1,
with sigma by the analytic calibration (`tacit.noise.gaussian`). The noise is that of the real numbers, and rounding to
the step is a function of the noisy sum alone (`tacit.noise.normal`), so nothing has to be added for finite arithmetic.
With a `PureMap` the contribution of a row is bounded in another norm, the noise is discrete Laplace, and delta is 0
(`tacit.matching.pure_noise`).

Everything that is later made of a sketch (means, a corpus, an evaluation of candidates) never sees the rows again and
costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.account.delta import automatic_delta, check_delta
from tacit.arrays import Floats, Integers
from tacit.card import Card
from tacit.card_words import promise_text
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit, VoidReason, check_epsilon
from tacit.labels import GIVEN
from tacit.matching.documents import DocumentMap
from tacit.matching.features import L1, FeatureMap
from tacit.matching.label_names import name_features
from tacit.matching.labels import ListedLabels, PublicLabels, Topics
from tacit.matching.marginals import JointLabels
from tacit.matching.pure_noise import laplace_steps, laplace_totals, laplace_variance
from tacit.matching.sides import lines_per_row
from tacit.matching.sums import ExactSums, PrivateFindings, RowSource, exact_sums
from tacit.matching.whole_numbers import GRID
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.gaussian import analytic_gaussian_sigma
from tacit.noise.normal import rounded_normal, uniform_words
from tacit.noise.source import Source, new_source
from tacit.rounding import rounded_up

MECHANISM = "matching sketch (noisy sums of public features per public label)"
STEPS_PER_SIGMA = 32
"""A released number is rounded to a step of at most sigma / 32, which adds less than 1 / 10,000 to the variance."""
SENSITIVITY = 1.0
DECLARED = "the labels that occur in the private rows were declared public"
SECRET_KEY = "the noise comes from a secret random key of the operating system"


@dataclass(frozen=True)
class Sketch:
    """A released sketch.

    feature_map      what was summed
    rule             the labels
    totals           whole numbers (labels, features + 1), the count last, in units of `step`
    step             a power of two: how many steps of the grid of the features one unit has
    noise_variance   of every number, in squared units of the features (rounding included)
    guarantee        what was promised
    side             whole numbers beside the sums, in units of `step` (`tacit.matching.sides`)
    text_column, label_column   the names of the columns, as they were typed; empty where none was
    """

    feature_map: FeatureMap
    rule: PublicLabels
    totals: Integers = field(repr=False)
    step: int
    noise_variance: float
    guarantee: Guarantee
    side: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    text_column: str = ""
    label_column: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.rule.names

    @property
    def card(self) -> Card:
        return Card(self.guarantee)

    @property
    def noise_deviation(self) -> float:
        """The standard deviation of the noise in each number of `sums`."""
        return math.sqrt(self.noise_variance)

    @property
    def sums(self) -> Floats:
        """Noisy sums of the features (labels, features)."""
        return np.asarray(self.totals[:, :-1] * (self.step / GRID))

    @property
    def dense_sums(self) -> Floats:
        """The same without words."""
        return self.sums[:, : self.feature_map.dense_dimension]

    def name_features(self) -> Floats:
        """How the dense features of the labels' names differ from each other."""
        return name_features(self.feature_map, self.labels)

    @property
    def counts(self) -> Floats:
        """Noisy numbers of rows, one per label; they may be negative."""
        return np.asarray(self.totals[:, -1] * (self.step / self.feature_map.count_steps))

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise in each of `counts`."""
        return self.noise_deviation * GRID / self.feature_map.count_steps

    def __str__(self) -> str:
        return f"sketch of {len(self.labels):,} labels, {self.feature_map.dimension:,} features: {self.guarantee}"


@dataclass(frozen=True)
class BuiltSketch:
    """A sketch, and what its holder may know about the rows: `findings` are private."""

    sketch: Sketch
    findings: PrivateFindings = field(repr=False)


def build_sketch(
    rows: RowSource,
    rule: PublicLabels,
    feature_map: FeatureMap,
    *,
    epsilon: float,
    delta: float | None = None,
    by_user: bool = False,
    seed: int | None = None,
    before_noise: Callable[[Guarantee], None] | None = None,
) -> BuiltSketch:
    """The sketch of private rows. Every call spends its budget anew.

    delta          without it, well below one over the number of records, which is then taken as public
    by_user        the promise is made to users, named in the rows
    seed           a test seed: repeatable, and without any guarantee
    before_noise   called with the promise before any noise is drawn, for a ledger that may refuse
    """
    check_epsilon(epsilon)
    source = new_source(seed)
    exact = exact_sums(rows, rule, feature_map, by_user=by_user)
    law = noise_law(feature_map, epsilon, delta, exact.units)
    promised = promise(feature_map, rule, law, by_user=by_user, automatic=law.delta > 0 and delta is None)
    if not source.secure:
        promised = promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)
    if before_noise is not None:
        before_noise(promised)
    return BuiltSketch(noisy_sketch(exact, rule, feature_map, law, promised, source), exact.findings)


@dataclass(frozen=True)
class NoiseLaw:
    """The noise on every number, and the promise that it keeps.

    sigma    the deviation of normal noise, in units of the features; None for discrete Laplace noise
    scale    the scale of discrete Laplace noise, in steps of the grid; None for normal noise
    """

    epsilon: float
    delta: float
    sigma: float | None = None
    scale: int | None = None

    @property
    def deviation(self) -> float:
        """Standard deviation in units of the features."""
        return math.sqrt(laplace_variance(self.scale)) if self.scale is not None else float(self.sigma or 0.0)

    def released(self, totals: Integers, step: int, source: Source) -> Integers:
        """Totals with noise in units of `step`. The only place where rows meet noise."""
        if self.scale is not None:
            return laplace_totals(totals, self.scale, step, source)
        assert self.sigma is not None
        return noisy_totals(totals, self.sigma, step, source)

    def described(self, unit: Unit) -> str:
        """The noise in the words of a card."""
        if self.scale is not None:
            return (
                f"discrete Laplace noise of scale {self.scale / GRID:.6g} on every number, of which one {unit.value} "
                "moves all together by at most 1 in absolute values"
            )
        return (
            f"normal noise of scale {self.sigma:.6g} on every number, of which one {unit.value} moves all together "
            "by at most 1"
        )


def noise_law(feature_map: FeatureMap, epsilon: float, delta: float | None, units: int) -> NoiseLaw:
    """The least noise that keeps the promise for features of this kind."""
    if feature_map.norm == L1:
        if delta:
            raise BadParameterError(
                "pure-has-no-delta", "{option.pure} promises epsilon alone: leave {option.delta} out"
            )
        return NoiseLaw(epsilon, 0.0, scale=laplace_steps(epsilon))
    chosen = automatic_delta(units) if delta is None else delta
    check_delta(chosen, units)
    return NoiseLaw(epsilon, chosen, sigma=analytic_gaussian_sigma(epsilon, chosen, SENSITIVITY))


def noisy_sketch(
    exact: ExactSums, rule: PublicLabels, feature_map: FeatureMap, law: NoiseLaw, promised: Guarantee, source: Source
) -> Sketch:
    """The release of exact sums; law in the module."""
    step = step_for(law.deviation)
    totals = law.released(exact.totals, step, source)
    side = law.released(exact.side, step, source)
    variance = law.deviation**2 + rounding_variance(step)
    return Sketch(feature_map, rule, totals, step, variance, promised, side)


def step_for(sigma: float) -> int:
    """The largest power of two of grid steps that is at most sigma / 32, and at least one."""
    return 1 << max(0, math.floor(math.log2(sigma * GRID / STEPS_PER_SIGMA)))


def rounding_variance(step: int) -> float:
    """The variance that rounding to a step adds, as if it were uniform."""
    return (step / GRID) ** 2 / 12


def noisy_totals(totals: Integers, sigma: float, step: int, source: Source) -> Integers:
    """The nearest multiples of `step` to totals + sigma Z, in units of the step.

    Whole steps are added as integers; the rest, a fraction with a power of two below it, is exact as a double.
    """
    whole, rest = np.divmod(totals, step)
    return np.asarray(whole + rounded_normal(rest / step, sigma * (GRID / step), uniform_words(source)))


def promise(
    feature_map: FeatureMap,
    rule: PublicLabels,
    law: NoiseLaw,
    *,
    by_user: bool,
    automatic: bool,
) -> Guarantee:
    """The promise to one record, or user."""
    unit = Unit.USER if by_user else Unit.RECORD
    assumptions = [SECRET_KEY]
    lists = rule.lists if isinstance(rule, JointLabels) else [rule] if isinstance(rule, ListedLabels) else []
    public = [each for each in lists if not each.bought]
    not_covered = ["what the public list of labels itself says"] if public or not lists else []
    assumptions += dict.fromkeys(DECLARED if each.declared else GIVEN for each in public)
    if automatic:
        assumptions.append(f"the number of {unit.value}s is public, because delta was chosen by it")
        not_covered.append(f"how many {unit.value}s there are, to one digit")
    if not by_user:
        not_covered.append("a person who has several records: their budgets add up")
    return Guarantee(
        notion=Notion.APPROXIMATE if law.delta else Notion.PURE,
        epsilon=law.epsilon,
        delta=law.delta,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism=MECHANISM,
        parameters={
            "labels": f"{_label_count(rule)} ({_other_rows(rule)})",
            "features": _features(feature_map),
            "feature map": feature_map.digest,
            "noise": law.described(unit),
        },
        not_covered=tuple(not_covered),
        assumptions=tuple(assumptions),
        provenance=(*feature_map.provenance(), *rule.provenance()),
    )


def _features(feature_map: FeatureMap) -> str:
    if isinstance(feature_map, DocumentMap):
        return f"{feature_map.dimension:,} and a count; beside them how many texts are about as long, in 8 public bins"
    return f"{feature_map.dimension:,} and a count"


def _label_count(rule: PublicLabels) -> str:
    if isinstance(rule, JointLabels):
        return f"{len(rule.names):,} in {len(rule.columns)} columns, and tables of all pairs of columns"
    return f"{len(rule.names):,}"


def _other_rows(rule: PublicLabels) -> str:
    """The fate of rows without a label of the rule: the same whether there are any or not."""
    if isinstance(rule, ListedLabels) and rule.other is not None:
        return f"rows with any other label count as '{rule.other}'"
    return "every row has a topic" if isinstance(rule, Topics) else "rows with any other label are left out"


def described(sketch: Sketch) -> str:
    """A line about a sketch for people: nothing that is not released."""
    unit = sketch.guarantee.unit.value
    rows = f"{max(0.0, float(sketch.counts.sum()) / lines_per_row(sketch.rule)):,.0f}"
    return f"{len(sketch.labels):,} labels, about {rows} {unit}s, {promise_text(sketch.guarantee, rounded_up)}"


def with_guarantee(sketch: Sketch, guarantee: Guarantee) -> Sketch:
    """The same sketch under another promise."""
    return replace(sketch, guarantee=guarantee)
