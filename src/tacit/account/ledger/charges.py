"""The cost of a release for each of its subjects, in numbers that may be added.

Two texts x, x' that are neighbors for every release about them, and releases with independent noise and exponents
e_1, e_2, ... (and deltas d_1, d_2, ...): all releases together are (e_1 + e_2 + ..., d_1 + d_2 + ...) differentially
private (basic composition; Dwork & Roth 2014, theorem 3.16). That is the only sum a ledger makes.

    one token, plain epsilon     units * epsilon                        Guarantee.for_document
    one token, metric            units * (epsilon * diameter + offset)  ... then over_diameter
    one document                 times it is released * epsilon         Guarantee.for_group
    add or remove one record     two steps make a replacement           for_group(2)

What finite arithmetic can add (the slack of a guarantee) is summed beside it.

The last line is needed because a trained model hides whether a record is there, while a rewritten text shows that it
is there and hides what it said. Only "replace one by any other" holds for both, so sums over both are made there.

Where no such conversion is proven the cost goes to an account of its own, named after its notion and metric, and is
never added to anything else: utility-optimized guarantees, metrics without a largest distance, promises that hold
within public output sets or redacted places only, and releases that promise nothing.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Model, Unit

PLAIN: Final = "plain"
"""The account in which epsilons add up: any two texts (of equal length, at the word level), one record replaced."""
PRESENCE: Final = "plain, presence"
"""The same releases counted for adding or removing a record, if each of them promises that."""
PLAIN_ADJACENCY: Final = frozenset(
    {
        Adjacency.ANY_TWO,
        Adjacency.EQUAL_LENGTH,
        Adjacency.EQUAL_SENTENCES,
        Adjacency.REPLACE_ONE,
        Adjacency.ADD_REMOVE,
    }
)
WHOLE_UNITS: Final = frozenset({Unit.DOCUMENT, Unit.RECORD, Unit.USER, Unit.NODE})
"""Units of a central release that cover a whole document of its data set."""

DOCUMENT: Final = "document"
USER: Final = "user"
KEY: Final = "key"
DATASET: Final = "dataset"
EVERY_DOCUMENT: Final = "every document"
EVERY_USER: Final = "every user"
HASH_BYTES: Final = 16


class Subject(NamedTuple):
    """Somebody or something whose budget a release spends.

    kind       "document", "user", "key" (of an API), or another word
    identity   what tells it from others, such as the text itself (white space, case and the like make no other
               document, see `tacit.text.identity`); only its keyed hash is ever stored
    units      how many units of the guarantee (tokens at the word level, else texts) the release holds of it.
               Left out, it is 1 for a document (not at the word level), and all documents of the same reservation
               for anybody else
    """

    kind: str
    identity: str
    units: int | None = None


class Charge(NamedTuple):
    """An exponent of `epsilon` (times the distance, in an account with a metric) plus `added`, and a `delta`.
    In the plain account `added` is what finite arithmetic can add: the slack of the guarantees."""

    epsilon: float
    added: float = 0.0
    delta: float = 0.0

    def plus(self, other: Charge) -> Charge:
        return Charge(self.epsilon + other.epsilon, self.added + other.added, self.delta + other.delta)

    def minus(self, other: Charge) -> Charge:
        return Charge(*(max(0.0, mine - theirs) for mine, theirs in zip(self, other, strict=True)))

    def at_least(self, other: Charge) -> Charge:
        return Charge(*(max(mine, theirs) for mine, theirs in zip(self, other, strict=True)))


NOTHING: Final = Charge(0.0)
Owner = tuple[str, str]
"""Kind of the subject and measure of its account, such as ("document", "plain")."""
Charges = dict[Owner, dict[bytes, tuple[int, Charge]]]
"""For each kind and measure: units and charge of each subject, by its hash."""


# One subject ------------------------------------------------------------------------------------------------------


class ChargeRate(NamedTuple):
    """The growth of the cost with the units: the account it belongs to, why it has no plain epsilon, and the
    function."""

    measure: str
    reason: str
    of: Callable[[int], Charge]


def rate_of(guarantee: Guarantee) -> ChargeRate:
    """The account of a guarantee, and the charge for any number of units of it."""
    try:
        _plain(guarantee, 1)
    except NoGuaranteeError as error:
        return _rate_apart(guarantee, str(error))
    return ChargeRate(PLAIN, "", _remembered(lambda units: _plain(guarantee, units)))


def presence_charge(guarantee: Guarantee) -> Charge | None:
    """The charge for adding or removing one record, where the guarantee is about that."""
    if guarantee.adjacency is not Adjacency.ADD_REMOVE or not guarantee.is_private or guarantee.metric is not None:
        return None
    return Charge(guarantee.epsilon, guarantee.slack, guarantee.delta)


def _plain(guarantee: Guarantee, units: int) -> Charge:
    if not guarantee.is_private:
        raise NoGuaranteeError("release-promises-nothing", "it promises nothing: {reason}", reason=guarantee.void)
    if guarantee.model is Model.CENTRAL and guarantee.unit not in WHOLE_UNITS:
        raise NoGuaranteeError(
            "unknown-number-of-units",
            "it protects one {unit}, and how many of them a document has is not known",
            unit=guarantee.unit.value,
        )
    if guarantee.adjacency is Adjacency.ADD_REMOVE:
        units *= 2
    whole = guarantee.for_document(units) if guarantee.unit.is_part_of_text else guarantee.for_group(units)
    if whole.metric is not None:
        whole = whole.over_diameter()
    if whole.adjacency not in PLAIN_ADJACENCY:
        raise NoGuaranteeError("no-plain-epsilon", "it only holds for {adjacency}", adjacency=whole.adjacency.value)
    return Charge(whole.epsilon, whole.slack, whole.delta)


def _rate_apart(guarantee: Guarantee, reason: str) -> ChargeRate:
    """Units that add up within their own notion, as far as even that is proven."""
    if not guarantee.is_private:
        return ChargeRate("no guarantee", reason, lambda units: NOTHING)

    def charge(units: int) -> Charge:
        whole = guarantee.for_document(units) if guarantee.unit.is_part_of_text else guarantee.for_group(units)
        return Charge(whole.epsilon, whole.offset + whole.slack, whole.delta)

    try:
        charge(1)
    except NoGuaranteeError:
        return ChargeRate(f"{_label(guarantee)}, no proven sum", reason, lambda units: NOTHING)
    return ChargeRate(_label(guarantee), reason, _remembered(charge))


def _label(guarantee: Guarantee) -> str:
    """Everything that must be equal for two such costs to be of one kind."""
    parts = [guarantee.notion.value, guarantee.model.value, f"per {guarantee.unit.value}"]
    if guarantee.metric is not None:
        vectors = f" [{guarantee.metric.fingerprint[:12]}]" if guarantee.metric.fingerprint else ""
        parts.append(f"{guarantee.metric.name}{vectors}")
    if guarantee.adjacency not in PLAIN_ADJACENCY:
        parts.append(guarantee.adjacency.value)
    if guarantee.domain is not None:
        parts.append(guarantee.domain)
    return ", ".join(parts)


def _remembered(charge: Callable[[int], Charge]) -> Callable[[int], Charge]:
    known: dict[int, Charge] = {}

    def of(units: int) -> Charge:
        price = known.get(units)
        if price is None:
            price = known[units] = charge(units)
        return price

    return of


# One release ------------------------------------------------------------------------------------------------------


def charges_of(
    guarantee: Guarantee,
    dataset: str,
    subjects: Iterable[Subject],
    hashed: Callable[[str, str], bytes],
    rate: ChargeRate | None = None,
) -> Charges:
    """The charges of the release for everybody in it.

    The data set is charged the largest cost of a document in it: documents are disjoint, so whichever one an observer
    asks about, only its own release was drawn from it (parallel composition, local model). A caller who knows better
    (several texts make one row) gives Subject("dataset", name, units) and the larger of the two counts.

    A central release, and one that names nobody but its data set, is about everybody in the data set.
    """
    rate = rate or rate_of(guarantee)
    totals: dict[str, dict[bytes, tuple[int, Charge]]] = {}
    documents, everything = False, 0
    unsized: list[Subject] = []
    for subject in subjects:
        kind, identity, units = subject
        if units is None:
            if kind != DOCUMENT:
                unsized.append(subject)
                continue
            units = _one_unit(guarantee)
        units = int(units)
        documents = documents or kind == DOCUMENT
        if units <= 0:
            if units < 0:
                raise BadParameterError(
                    "negative-number-of-units", "a subject has 0 units or more, not {units}", units=units
                )
            continue
        if kind == DOCUMENT:
            everything += units
        of_kind = totals.get(kind)
        if of_kind is None:
            of_kind = totals[kind] = {}
        name = hashed(kind, identity)
        charge = rate.of(units)
        before = of_kind.get(name)
        of_kind[name] = (units, charge) if before is None else (before[0] + units, before[1].plus(charge))
    for kind, identity, _ in unsized:
        units = everything if documents else _one_unit(guarantee)
        if units:
            totals.setdefault(kind, {})[hashed(kind, identity)] = (units, rate.of(units))
    own = hashed(DATASET, dataset)
    # Sorted, because a database takes rows in the order of its index much faster.
    result: Charges = {
        (kind, rate.measure): {name: charged[name] for name in sorted(charged)} for kind, charged in totals.items()
    }
    if guarantee.model is Model.CENTRAL or set(totals) == {DATASET}:
        units = totals.get(DATASET, {}).get(own, (1, NOTHING))[0]
        result.update(_for_everybody(guarantee, rate, own, units))
        return result
    counted = [totals[kind] for kind in (DATASET, DOCUMENT) if kind in totals]
    if not counted:  # how what the others have is spread over documents is not known
        counted = list(totals.values())
    units, largest = 0, NOTHING
    for some, charge in {row for charged in counted for row in charged.values()}:
        units, largest = max(units, some), largest.at_least(charge)
    result[DATASET, rate.measure] = {own: (units, largest)}
    return result


def _one_unit(guarantee: Guarantee) -> int:
    """The units of a subject without a number: one document or record, but never one token."""
    if guarantee.unit.is_part_of_text:
        raise BadParameterError(
            "units-not-counted",
            "a guarantee per {unit} needs the number of {unit}s of everybody: give Subject(kind, identity, units=...)",
            unit=guarantee.unit.value,
        )
    return 1


def _for_everybody(guarantee: Guarantee, rate: ChargeRate, own: bytes, units: int) -> Charges:
    """About every document of a data set, and about a whole person only if the guarantee says so: nobody knows how many
    documents a person has in it."""
    own_charge = {own: (units, rate.of(units))}
    result: Charges = {(DATASET, rate.measure): own_charge, (EVERY_DOCUMENT, rate.measure): own_charge}
    if guarantee.unit is Unit.USER or rate.measure != PLAIN:
        result[EVERY_USER, rate.measure] = own_charge
    else:
        result[EVERY_USER, f"{_label(guarantee)}, any number of them"] = {own: (1, NOTHING)}
    presence = presence_charge(guarantee)
    if presence is not None and rate.measure == PLAIN:
        result[DATASET, PRESENCE] = {own: (1, presence)}
    return result


_ROW = struct.Struct(f"<{HASH_BYTES}sqddd")


def digest_of(charges: Mapping[Owner, Mapping[bytes, tuple[int, Charge]]]) -> bytes:
    """A hash of all charges of a release, in an order of its own: the same after a way through any database."""
    digest = hashlib.sha256()
    for owner in sorted(charges):
        rows = charges[owner]
        digest.update(f"{owner[0]}\0{owner[1]}\0{len(rows)}\0".encode())
        pack = _ROW.pack
        digest.update(b"".join([pack(name, rows[name][0], *rows[name][1]) for name in sorted(rows)]))
    return digest.digest()
