"""The language all rooms speak: what was promised, to whom, and what was not.

A `Guarantee` is made by the code that adds the noise, from the same numbers. It bounds the privacy loss

    ln( Pr[M(x) = y] / Pr[M(x') = y] )  <=  exponent(x, x')        for all outputs y and all adjacent x, x'

where the exponent is

    pure          epsilon + slack
    approximate   epsilon + slack, for probabilities of events instead of outputs, and up to delta:
                  Pr[M(x) in E] <= exp(epsilon + slack) Pr[M(x') in E] + delta  for all events E
    metric        epsilon * d(x, x') + offset + slack
    utility-optimized metric
                  the metric bound, for *protected* outputs only; every other output reveals its input exactly

With a delta the loss itself may exceed the exponent with a probability larger than delta (`card.plain_sentence` says
what follows for it). `slack` is what finite arithmetic can add at most; it is proven by the sampler, not guessed.

`domain` names the public sets a promise refers to (the output sets of CusText, the sensitive words of SanText+), with a
hash of them: promises about different sets do not add up.

Guarantees compose and convert only where a proof exists, and refuse otherwise. Two guarantees of different notions,
units, adjacencies or metrics are never comparable, whatever their epsilons say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee_version_1 import upgraded
from tacit.rounding import rounded_up

NOTE = "note"
"""The parameter of a guarantee that holds what its user should know although it changes no promise."""


class Notion(Enum):
    PURE = "pure"
    APPROXIMATE = "approximate"
    METRIC = "metric"
    UTILITY_OPTIMIZED_METRIC = "utility-optimized metric"
    NONE = "none"

    @property
    def label(self) -> str:
        return "no differential privacy" if self is Notion.NONE else f"{self.value} differential privacy"


class Model(Enum):
    """Who adds the noise: the owner of each text before it leaves (local) or a trusted curator (central)."""

    LOCAL = "local"
    CENTRAL = "central"


class Unit(Enum):
    """What one secret is."""

    TOKEN = "token"
    SENTENCE = "sentence"
    DOCUMENT = "document"
    RECORD = "record"
    USER = "user"
    NODE = "node"
    SUBGRAPH = "subgraph"


class Adjacency(Enum):
    """Which two inputs an observer is kept from telling apart."""

    ANY_TWO = "any two inputs"
    SAME_SET = "any two words of the same public output set"
    SAME_MARKS = "any two words, as long as the detector marks the other words of the text alike"
    SAME_PUNCTUATION = "any two words, neither of them a punctuation mark that is kept"
    SAME_SET_AND_PUNCTUATION = (
        "any two words of the same public output set, neither of them a punctuation mark that is kept"
    )
    SAME_MARKS_AND_PUNCTUATION = (
        "any two words, neither of them a punctuation mark that is kept, as long as the detector marks the other words "
        "of the text alike"
    )
    EQUAL_LENGTH = "any two texts with the same number of tokens"
    EQUAL_LENGTH_SAME_SETS = "any two texts whose words lie in the same public output sets, position by position"
    EQUAL_LENGTH_SAME_PUNCTUATION = (
        "any two texts with the same number of tokens and the same kept punctuation marks in the same places"
    )
    EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION = (
        "any two texts with the same kept punctuation marks in the same places, whose other words lie in the same "
        "public output sets, position by position"
    )
    ADD_REMOVE = "data sets that differ by adding or removing one unit"
    REPLACE_ONE = "data sets that differ by replacing one unit"
    SAME_REDACTED = "data sets that differ by replacing one unit with another that has the same redacted text"
    SAME_SPANS = "any two words inside a detected span, as long as the detector finds the same spans in both texts"

    @property
    def within_sets(self) -> bool:
        """Whether a word hides only among the words of its own public output set."""
        return self in _WITHIN_SETS

    @property
    def keeps_punctuation(self) -> bool:
        """Whether punctuation marks are copied, so that only texts with the same marks are hidden among each other."""
        return self in _KEPT_PUNCTUATION

    @property
    def with_kept_punctuation(self) -> Adjacency:
        """What is left of this adjacency of words when punctuation marks are copied."""
        if self.keeps_punctuation:
            return self
        if self not in _SAME_PUNCTUATION:
            raise NoGuaranteeError(
                "punctuation-not-proven",
                "nothing is proven about copied punctuation marks between {adjacency}",
                adjacency=self.value,
            )
        return _SAME_PUNCTUATION[self]


_TEXT_ADJACENCY = {
    Adjacency.ANY_TWO: Adjacency.EQUAL_LENGTH,
    Adjacency.SAME_SET: Adjacency.EQUAL_LENGTH_SAME_SETS,
    Adjacency.SAME_MARKS: Adjacency.EQUAL_LENGTH,
    Adjacency.SAME_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
    Adjacency.SAME_SET_AND_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
    Adjacency.SAME_MARKS_AND_PUNCTUATION: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
}
_SAME_PUNCTUATION = {
    Adjacency.ANY_TWO: Adjacency.SAME_PUNCTUATION,
    Adjacency.SAME_SET: Adjacency.SAME_SET_AND_PUNCTUATION,
    Adjacency.SAME_MARKS: Adjacency.SAME_MARKS_AND_PUNCTUATION,
    Adjacency.EQUAL_LENGTH: Adjacency.EQUAL_LENGTH_SAME_PUNCTUATION,
    Adjacency.EQUAL_LENGTH_SAME_SETS: Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
}
_KEPT_PUNCTUATION = frozenset(_SAME_PUNCTUATION.values())
_WITHIN_SETS = frozenset(
    {
        Adjacency.SAME_SET,
        Adjacency.SAME_SET_AND_PUNCTUATION,
        Adjacency.EQUAL_LENGTH_SAME_SETS,
        Adjacency.EQUAL_LENGTH_SAME_SETS_AND_PUNCTUATION,
    }
)


class MetricKind(Enum):
    """Which distance a metric guarantee is stated in."""

    EUCLIDEAN = "euclidean"
    HAMMING = "hamming"
    MAHALANOBIS = "mahalanobis"
    OTHER = "other"


@dataclass(frozen=True)
class Metric:
    """The distance a metric guarantee is stated in, with the numbers that make its epsilon readable.

    `diameter` is a proven upper bound on the distance of any two inputs, `typical` the median distance of two
    random words of the public vocabulary, `fingerprint` a hash of the vectors behind it: distances of different
    vectors are never the same metric. `summed` counts over how many words the distance is summed.
    """

    name: str
    diameter: float | None = None
    typical: float | None = None
    fingerprint: str | None = None
    summed: int = 1
    kind: MetricKind = MetricKind.OTHER

    @property
    def label(self) -> str:
        return self.name if self.summed == 1 else f"{self.name}, summed over {self.summed:,} words"

    def times(self, count: int) -> Metric:
        return replace(
            self,
            diameter=None if self.diameter is None else self.diameter * count,
            typical=None if self.typical is None else self.typical * count,
            summed=self.summed * count,
        )


class ProvenanceKind(Enum):
    """Where something that a mechanism learned or was given comes from."""

    PUBLIC = "public"
    """Public, or assumed to be, as the source says."""
    DECLARED_PUBLIC = "declared public"
    """From text that its user declared public."""
    RANDOM = "random"
    """Drawn, not learned."""
    PAID = "paid"
    """Learned from private data by a step that a budget paid for."""


@dataclass(frozen=True)
class Provenance:
    """Something a mechanism learned or was given. Private origin is only allowed when a private step paid for it."""

    name: str
    source: str
    public: bool = True
    paid_by: str | None = None
    kind: ProvenanceKind = ProvenanceKind.PUBLIC

    def __post_init__(self) -> None:
        if not self.public:
            object.__setattr__(self, "kind", ProvenanceKind.PAID)


class VoidReason(Enum):
    """Why nothing is promised. The sentence beside it (`Guarantee.void`) is for people."""

    TEST_SEED = "test seed"
    """The noise can be drawn again by whoever knows the seed."""
    NO_NOISE = "no noise"
    DECLARED_PUBLIC = "declared public"
    """No noise, on text that was declared public, from public weights."""
    STARTING_WEIGHTS = "starting weights"
    """It was made from weights without a guarantee."""
    NO_CARD = "no card"
    """Weights that have read private text, whose card is lost."""
    REFUTED = "refuted"
    """The claim of a paper that is known to be wrong."""
    OUTSIDE_DOMAIN = "outside domain"
    """Parameters for which nothing is proven."""
    NO_CONVERSION = "no conversion"
    """There is a promise, but none for the unit that was asked for."""
    OTHER = "other"


class ExclusionKind(Enum):
    """What a line of "not covered" speaks of, where code has to know."""

    LENGTH = "length"
    """How many tokens a text has."""
    EARLIER_WEIGHTS = "earlier weights"
    """What starting weights had learned from records of their own."""
    OTHER = "other"


class Exclusion(str):
    """A line of "not covered" that says of what kind it is; a plain string is of the kind OTHER."""

    kind: ExclusionKind

    def __new__(cls, line: str, kind: ExclusionKind = ExclusionKind.OTHER) -> Exclusion:
        self = super().__new__(cls, line)
        self.kind = kind
        return self

    @staticmethod
    def kind_of(line: str) -> ExclusionKind:
        return line.kind if isinstance(line, Exclusion) else ExclusionKind.OTHER


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
    parameters: Mapping[str, Any] = field(default_factory=dict)
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
        everything = (self, *others)
        if broken := _first_void(everything):
            return self.voided(*broken)
        for other in others:
            self._must_match(other, "compose")
        return replace(
            self,
            notion=_sum_notion(everything),
            epsilon=math.fsum(g.epsilon for g in everything),
            delta=_probability(math.fsum(g.delta for g in everything)),
            offset=math.fsum(g.offset for g in everything),
            slack=math.fsum(g.slack for g in everything),
            parameters=_all_parameters(everything),
            mechanism=_joined(everything),
            not_covered=_union(g.not_covered for g in everything),
            assumptions=_union(g.assumptions for g in everything),
            provenance=_union(g.provenance for g in everything),
            history=(*self.history, f"sequential composition of {len(everything)} releases"),
        )

    def beside(self, *others: Guarantee) -> Guarantee:
        """Parallel composition: each unit is in exactly one of the releases, so the weakest one counts."""
        everything = (self, *others)
        if broken := _first_void(everything):
            return self.voided(*broken)
        for other in others:
            self._must_match(other, "compose")
        return replace(
            self,
            notion=_sum_notion(everything),
            epsilon=max(g.epsilon for g in everything),
            delta=max(g.delta for g in everything),
            offset=max(g.offset for g in everything),
            slack=max(g.slack for g in everything),
            parameters=_all_parameters(everything),
            mechanism=_joined(everything),
            not_covered=_union(g.not_covered for g in everything),
            assumptions=_union(
                [
                    *(g.assumptions for g in everything),
                    ("each unit is in exactly one of the parts, whatever its value",),
                ]
            ),
            provenance=_union(g.provenance for g in everything),
            history=(*self.history, f"parallel composition of {len(everything)} releases"),
        )

    def for_document(self, tokens: int) -> Guarantee:
        """From one token to a whole text of `tokens` tokens: the exponents of the positions add up.

        Proven because the tokens are rewritten independently. Texts of different length are not adjacent: the number
        of tokens stays visible.
        """
        tokens = _count(tokens, "tokens")
        if self.unit is not Unit.TOKEN:
            raise NoGuaranteeError(
                "no-conversion-to-documents",
                "only a guarantee per token adds up over a text; this one is per {unit}",
                unit=self.unit.value,
            )
        if self.model is not Model.LOCAL:
            raise NoGuaranteeError(
                "no-conversion-to-documents",
                "tokens add up over a text only in the local model, where each one is rewritten alone",
            )
        if self.adjacency not in _TEXT_ADJACENCY:
            raise NoGuaranteeError(
                "no-conversion-to-documents",
                "no proven conversion to documents from adjacency '{adjacency}'",
                adjacency=self.adjacency.value,
            )
        return replace(
            self._repeated(tokens),
            unit=Unit.DOCUMENT,
            adjacency=_TEXT_ADJACENCY[self.adjacency],
            history=(*self.history, f"summed over a text of {tokens:,} tokens"),
        )

    def for_user(self, documents: int) -> Guarantee:
        """From one document, record or sentence to a person who has `documents` of them in the data."""
        documents = _count(documents, "documents")
        if self.unit not in (Unit.DOCUMENT, Unit.RECORD, Unit.SENTENCE):
            raise NoGuaranteeError(
                "no-conversion-to-users",
                "no proven conversion from '{unit}' to users: convert to documents first (for_document)",
                unit=self.unit.value,
            )
        grouped = self._group(documents)
        return replace(
            grouped,
            unit=Unit.USER,
            history=(*self.history, f"{documents:,} {self.unit.value}s of one user"),
        )

    def for_group(self, size: int) -> Guarantee:
        """Group privacy: any `size` units change together."""
        size = _count(size, "size")
        return replace(self._group(size), history=(*self.history, f"group of {size:,} {self.unit.value}s"))

    # Conversion -----------------------------------------------------------------------------------------------

    def over_diameter(self) -> Guarantee:
        """From metric to plain differential privacy: no two inputs are farther apart than the diameter."""
        if self.notion is Notion.NONE:
            return self
        if self.notion is Notion.UTILITY_OPTIMIZED_METRIC:
            raise NoGuaranteeError(
                "no-plain-epsilon",
                "a utility-optimized guarantee has no plain counterpart: an unprotected output reveals its input "
                "exactly. Use 'santext' (every word sensitive) if you need one",
            )
        if self.notion is not Notion.METRIC:
            raise NoGuaranteeError(
                "no-plain-epsilon", "{notion} has no metric to convert over", notion=self.notion.label
            )
        if self.metric is None or self.metric.diameter is None:
            raise NoGuaranteeError(
                "no-plain-epsilon", "the metric has no proven largest distance, so no plain epsilon follows from it"
            )
        return replace(
            self,
            notion=Notion.APPROXIMATE if self.delta else Notion.PURE,
            epsilon=self.epsilon * self.metric.diameter + self.offset,
            offset=0.0,
            metric=None,
            history=(
                *self.history,
                f"over the largest distance {rounded_up(self.metric.diameter)} of the {self.metric.label}",
            ),
        )

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
        return replace(self, not_covered=_union([self.not_covered, items]))

    def also_assuming(self, *items: str) -> Guarantee:
        return replace(self, assumptions=_union([self.assumptions, items]))

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
        self._must_match(other, "compare", same_notion=True)
        return other

    # Parts shared by the operations ---------------------------------------------------------------------------

    def _must_match(self, other: Guarantee, verb: str, *, same_notion: bool = False) -> None:
        plain = (Notion.PURE, Notion.APPROXIMATE)
        both_plain = self.notion in plain and other.notion in plain and not same_notion
        if self.notion is not other.notion and not both_plain:
            raise NoGuaranteeError(
                "guarantees-not-comparable",
                "cannot {verb} {notion} with {other_notion}: their epsilons measure different things. Convert with "
                "over_diameter() first where that is proven",
                verb=verb,
                notion=self.notion.label,
                other_notion=other.notion.label,
            )
        for name in ("model", "unit", "adjacency", "metric", "domain", "sensitive_share"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise NoGuaranteeError(
                    "guarantees-not-comparable",
                    "cannot {verb} guarantees with different {property}: {mine} and {theirs}",
                    verb=verb,
                    property=name.replace("_", " "),
                    mine=_shown(mine),
                    theirs=_shown(theirs),
                )

    def _repeated(self, count: int) -> Guarantee:
        """`count` independent local releases, one for each unit that may change."""
        if self.notion is Notion.NONE:
            return self
        metric = None if self.metric is None else self.metric.times(count)
        return replace(
            self,
            epsilon=self.epsilon if metric else self.epsilon * count,
            delta=_probability(self.delta * count),
            offset=self.offset * count,
            slack=self.slack * count,
            metric=metric,
        )

    def _group(self, size: int) -> Guarantee:
        if self.model is Model.LOCAL or self.notion is Notion.NONE:
            return self._repeated(size)
        if self.metric is not None:
            raise NoGuaranteeError(
                "no-group-privacy", "no proven group privacy for a metric guarantee in the central model"
            )
        return replace(
            self,
            epsilon=self.epsilon * size,
            delta=group_delta(self.epsilon + self.slack, self.delta, size),
            slack=self.slack * size,
        )

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

    def to_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for item in fields(self):
            result[item.name] = _plain(getattr(self, item.name))
        result["not_covered_kinds"] = [Exclusion.kind_of(line).value for line in self.not_covered]
        return result

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        values = upgraded(data)
        values["notion"] = Notion(values["notion"])
        values["model"] = Model(values["model"])
        values["unit"] = Unit(values["unit"])
        values["adjacency"] = Adjacency(values["adjacency"])
        values["epsilon"] = math.inf if values["epsilon"] is None else values["epsilon"]
        if values.get("metric"):
            metric = values["metric"]
            values["metric"] = Metric(**{**metric, "kind": MetricKind(metric["kind"])})
        values["provenance"] = tuple(
            Provenance(**{**item, "kind": ProvenanceKind(item["kind"])}) for item in values["provenance"]
        )
        if values["void_reason"] is not None:
            values["void_reason"] = VoidReason(values["void_reason"])
        kinds = values.pop("not_covered_kinds")
        values["not_covered"] = [
            Exclusion(line, ExclusionKind(kind)) for line, kind in zip(values["not_covered"], kinds, strict=True)
        ]
        for name in ("not_covered", "assumptions", "history"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """delta of a group: delta * (1 + e^eps + ... + e^{(size-1) eps}) (Vadhan 2017, lemma 2.2)."""
    if delta == 0.0:
        return 0.0
    if epsilon * size > 700:
        return 1.0
    factor = float(size) if epsilon == 0.0 else math.expm1(epsilon * size) / math.expm1(epsilon)
    return _probability(delta * factor)


def check_epsilon(epsilon: Any, *, largest: float = 1e6) -> float:
    """The epsilon of a mechanism: a finite positive number that still means something."""
    try:
        value = float(epsilon)
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


def _first_void(everything: tuple[Guarantee, ...]) -> tuple[str, VoidReason] | None:
    broken = next((g for g in everything if g.notion is Notion.NONE), None)
    return None if broken is None else (broken.void or "", broken.void_reason or VoidReason.OTHER)


def _sum_notion(everything: tuple[Guarantee, ...]) -> Notion:
    notions = {g.notion for g in everything}
    if Notion.APPROXIMATE in notions:
        return Notion.APPROXIMATE
    return everything[0].notion


def _all_parameters(everything: tuple[Guarantee, ...]) -> Mapping[str, Any]:
    if all(g.parameters == everything[0].parameters for g in everything):
        return everything[0].parameters
    return {f"release {number}": dict(g.parameters) for number, g in enumerate(everything, 1)}


def _joined(everything: tuple[Guarantee, ...]) -> str:
    return " + ".join(dict.fromkeys(g.mechanism for g in everything))


def _union(groups: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _probability(value: float) -> float:
    return min(1.0, value)


def _count(value: int, name: str) -> int:
    if int(value) != value or value < 1:
        raise BadParameterError(
            "impossible-count", "{name} must be a whole number of at least 1, not {value}", name=name, value=value
        )
    return int(value)


def _shown(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return value.name if isinstance(value, Metric) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Metric | Provenance):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Exclusion):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
