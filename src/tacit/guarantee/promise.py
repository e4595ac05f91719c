"""`Guarantee`: one promise with everything that belongs to it, its numbers checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import composition, conversion, serialization
from tacit.guarantee.adjacency import Adjacency
from tacit.guarantee.origins import Provenance, VoidReason
from tacit.guarantee.terms import Metric, Model, Notion, Unit

NOTE = "note"
"""The parameter of a guarantee that holds what its user should know although it changes no promise."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    notion: Notion
    epsilon: float
    delta: float = 0.0
    offset: float = 0.0
    slack: float = 0.0
    model: Model = Model.LOCAL
    unit: Unit
    adjacency: Adjacency
    metric: Metric | None = None
    domain: str | None = None
    sensitive_share: float | None = None
    mechanism: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    not_covered: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    history: tuple[str, ...] = ()
    void: str | None = None
    void_reason: VoidReason | None = None

    def __post_init__(self) -> None:
        _check_numbers(self)
        if (self.notion is Notion.NONE) is (self.void_reason is None):
            object.__setattr__(self, "void_reason", VoidReason.OTHER if self.notion is Notion.NONE else None)
        needs_metric = self.notion in (Notion.METRIC, Notion.UTILITY_OPTIMIZED_METRIC)
        if needs_metric and self.metric is None:
            raise BadParameterError("metric-not-named", "a metric guarantee must name its metric")
        if self.notion is Notion.NONE and not self.void:
            raise BadParameterError("void-without-reason", "a missing guarantee must say why there is none")
        for item in self.provenance:
            if not item.public and not item.paid_by:
                raise NoGuaranteeError(
                    "learned-from-private-text",
                    "'{name}' was learned from private data ({source}) and no private step paid for it: learn it "
                    "from public data, or spend budget on it",
                    name=item.name,
                    source=item.source,
                )

    # What the numbers mean ------------------------------------------------------------------------------------

    def exponent(self, distance: float | None = None) -> float:
        """The largest privacy loss between two inputs (at this distance, for a metric notion)."""
        if self.notion is Notion.NONE:
            return math.inf
        if self.metric is None:
            return self.epsilon + self.slack
        if distance is None:
            distance = self.metric.diameter
        if distance is None:
            return math.inf
        return self.epsilon * distance + self.offset + self.slack

    @property
    def is_private(self) -> bool:
        return self.notion is not Notion.NONE

    # Composition ----------------------------------------------------------------------------------------------

    def then(self, *others: Guarantee) -> Guarantee:
        """Sequential composition: several releases about the same unit add up."""
        return composition.in_sequence((self, *others))

    def beside(self, *others: Guarantee) -> Guarantee:
        """Parallel composition: each unit is in exactly one of the releases, so the weakest one counts."""
        return composition.in_parallel((self, *others))

    def for_document(self, tokens: int) -> Guarantee:
        """From one token to a whole text of `tokens` tokens: the exponents of the positions add up.

        Proven because the tokens are rewritten independently. Texts of different length are not adjacent: the number
        of tokens stays visible.
        """
        return conversion.for_document(self, tokens)

    def for_user(self, documents: int) -> Guarantee:
        """From one document, record or sentence to a person who has `documents` of them in the data."""
        return conversion.for_user(self, documents)

    def for_group(self, size: int) -> Guarantee:
        """Group privacy: any `size` units change together."""
        return conversion.for_group(self, size)

    # Conversion -----------------------------------------------------------------------------------------------

    def over_diameter(self) -> Guarantee:
        """From metric to plain differential privacy: no two inputs are farther apart than the diameter."""
        return conversion.over_diameter(self)

    def voided(self, sentence: str, reason: VoidReason = VoidReason.OTHER) -> Guarantee:
        """The same release without any promise, and why: for people, and for code."""
        return replace(
            self,
            notion=Notion.NONE,
            epsilon=math.inf,
            delta=0.0,
            offset=0.0,
            slack=0.0,
            metric=self.metric,
            void=sentence,
            void_reason=reason,
        )

    def also_not_covered(self, *items: str) -> Guarantee:
        """The same promise with further lines of what it does not cover."""
        return replace(self, not_covered=composition.union([self.not_covered, items]))

    def also_assuming(self, *items: str) -> Guarantee:
        """The same promise with further assumptions."""
        return replace(self, assumptions=composition.union([self.assumptions, items]))

    # Comparison -----------------------------------------------------------------------------------------------

    def __lt__(self, other: object) -> bool:
        """Strictly stronger: at most the same loss in every parameter, and less in one."""
        return self <= other and self._loss() != self._comparable(other)._loss()

    def __le__(self, other: object) -> bool:
        peer = self._comparable(other)
        return all(mine <= theirs for mine, theirs in zip(self._loss(), peer._loss(), strict=True))

    def __gt__(self, other: object) -> bool:
        return self._comparable(other) < self

    def __ge__(self, other: object) -> bool:
        return self._comparable(other) <= self

    def _loss(self) -> tuple[float, float, float]:
        return (self.epsilon, self.delta, self.offset + self.slack)

    def _comparable(self, other: object) -> Guarantee:
        if not isinstance(other, Guarantee):
            raise TypeError("a guarantee compares only with a guarantee")
        composition.must_match(self, other, "compare", same_notion=True)
        return other

    # For people -----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        from tacit.card import Card

        return Card(self).to_text()

    def __repr__(self) -> str:
        from tacit.card_words import promise_text

        why = f": {self.void}" if self.void else ""
        return f"<Guarantee of {self.mechanism}: {promise_text(self)}{why}>"

    def _repr_html_(self) -> str:
        from tacit.card import Card

        return Card(self)._repr_html_()

    # Serialization --------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """The guarantee as plain data, as a card holds it."""
        return serialization.plain_data(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Guarantee:
        """The guarantee of a card of any version."""
        return cls(**serialization.typed_fields(data))


def check_epsilon(epsilon: object, *, largest: float = 1e6) -> float:
    """The epsilon of a mechanism: a finite positive number that still means something."""
    try:
        value = float(epsilon)  # type: ignore[arg-type]  # whatever is no number is refused below
    except (TypeError, ValueError):
        raise BadParameterError(
            "impossible-epsilon", "epsilon must be a number, not {epsilon!r}", epsilon=epsilon
        ) from None
    if math.isnan(value):
        raise BadParameterError("impossible-epsilon", "epsilon is not a number (NaN): give a positive number such as 2")
    if value <= 0:
        raise BadParameterError(
            "impossible-epsilon",
            "epsilon must be positive, not {epsilon:g}: smaller is more private, for example 0.5",
            epsilon=value,
        )
    if value > largest:
        raise BadParameterError(
            "epsilon-protects-nothing",
            "epsilon {epsilon:g} protects nothing: give at most {largest:g}",
            epsilon=value,
            largest=largest,
        )
    return value


def _check_numbers(g: Guarantee) -> None:
    for name in ("epsilon", "delta", "offset", "slack"):
        value = getattr(g, name)
        if math.isnan(value) or value < 0:
            raise BadParameterError(
                "impossible-guarantee", "{name} must be a number of at least 0, not {value}", name=name, value=value
            )
    if g.delta > 1:
        raise BadParameterError("impossible-guarantee", "delta is a probability, not {delta}", delta=g.delta)
    if g.notion is not Notion.NONE and math.isinf(g.epsilon):
        raise BadParameterError("impossible-guarantee", "an infinite epsilon is no guarantee")
    if g.notion is Notion.PURE and g.delta:
        raise BadParameterError("impossible-guarantee", "pure differential privacy has delta 0")
    if g.offset and g.notion in (Notion.PURE, Notion.APPROXIMATE):
        raise BadParameterError("impossible-guarantee", "only a metric guarantee has an offset; add it to epsilon")
