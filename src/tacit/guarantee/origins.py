"""Where a mechanism learned what it knows, why a promise is void, and what no promise covers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
    """The noise can be drawn again by anybody who knows the seed."""
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
    """The subject of a line of "not covered", where code has to know it."""

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
