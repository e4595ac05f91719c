"""Releases that were made without a ledger, written down by their cards."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.account.ledger.charges import Subject
from tacit.account.ledger.ledger import Ledger
from tacit.card import Card
from tacit.errors import BadInputError
from tacit.guarantee import Model, Unit


@dataclass(frozen=True)
class AddedCard:
    """The release of a card, and whether it was in the ledger before."""

    release: int
    known: bool


def add_card(ledger: Ledger, text: str, *, dataset: str, again: bool = False, name: str = "") -> AddedCard:
    """The release that a card (its JSON) describes, counted for the data set and every document in it. The same card
    counts once, or with `again` once more for each time it is added."""
    card = Card.from_json(text)
    count = 1
    if again:
        count += sum(record.guarantee == card.guarantee for record in ledger.releases(dataset=dataset))
    command = card.facts.command if card.facts is not None else ""
    reservation = ledger.reserve(
        card.guarantee,
        dataset=dataset,
        subjects=[Subject("dataset", dataset, units_of_largest_row(card))],
        token=f"card {count} {text}",
        command=command or f"tacit ledger add {name}",
    )
    known = reservation.state == "committed"
    reservation.commit()
    return AddedCard(reservation.release, known)


def units_of_largest_row(card: Card) -> int:
    """The number of units of the guarantee in the largest row of the release."""
    if card.guarantee.model is Model.CENTRAL or card.guarantee.unit in (Unit.USER, Unit.RECORD):  # a record is a row
        return 1
    if card.facts is None:
        raise BadInputError(
            "card-without-facts",
            "this card does not say how long its texts are: add the card that lies beside the release",
        )
    return max(1, int(card.facts.longest_row))
