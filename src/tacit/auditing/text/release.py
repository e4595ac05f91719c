"""The mechanism that made a release: from the privacy card beside it, or from what the user says.

The card names the options that decided the release, without folders (`ReleaseFacts.configuration`). So a mechanism
whose parts have public names can be built again from the card alone; files (vectors, word lists) must be given again,
and the fingerprint of the metric on the card says whether they are the same ones. A card without these options (from
before they were written down, or of a release that no configuration made) cannot say it: the user has to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tacit.card import Card
from tacit.catalog import build
from tacit.errors import BadInputError, BadParameterError
from tacit.mechanism import Mechanism
from tacit.text.files.memory import is_in_memory
from tacit.words.base import WordMechanism

CARD_SUFFIX = ".card.json"


@dataclass(frozen=True)
class StatedMechanism:
    """The name of a mechanism and its options, as typed values or as text."""

    name: str
    options: Mapping[str, object]


@dataclass(frozen=True)
class MadeBy:
    """A mechanism and how it is known."""

    mechanism: Mechanism
    source: str
    card: Card | None = None


def card_beside(private: object) -> Card | None:
    """The card of a released file, if it has one; data in memory has none."""
    if is_in_memory(private):
        return None
    path = Path(f"{private}{CARD_SUFFIX}")
    if not path.is_file():
        return None
    try:
        return Card.of_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-card",
            "the card {name} cannot be read: copy it again, or give {option.mechanism}",
            name=path.name,
        ) from error


def was_shuffled(card: Card | None) -> bool:
    """Whether a card says that the rows of its release were shuffled: row i was then not made from row i of the
    original, and nothing that compares them in pairs means anything."""
    return card is not None and bool(card.shuffled is not None or card.made_by.get("shuffle"))


def refuse_shuffled(card: Card | None) -> None:
    """The error for a release whose rows were shuffled: attacks on pairs of rows would measure nothing and call any
    release safe."""
    if was_shuffled(card):
        raise BadInputError(
            "rows-were-shuffled",
            "the card says that the rows of this release were shuffled, so they cannot be paired with those of the "
            "original: rewrite the original once more without {option.shuffle}, to a file that you do not release, and "
            "audit that; or check the mechanism itself with 'tacit audit mechanism'",
        )


def readable_card(private: object) -> Card | None:
    """The card of a release, if there is one that can be read."""
    try:
        return card_beside(private)
    except BadInputError:
        return None


def made_by(
    card: Card | None,
    on_card: StatedMechanism | None,
    name: str | None,
    epsilon: float | None,
    options: Mapping[str, object],
) -> MadeBy | None:
    """The mechanism of a release with this card, whose configuration says `on_card`; what the user says goes first.
    None when neither tells it."""
    parameters: dict[str, object] = {key.replace("-", "_"): str(value) for key, value in options.items()}
    if epsilon is not None:
        parameters["epsilon"] = epsilon
    if name is None and on_card is None:
        if parameters:
            raise BadParameterError(
                "options-without-mechanism",
                "say which mechanism the options belong to, with {option.mechanism[NAME]}",
            )
        if card is not None and not card.made_by:
            raise BadInputError(
                "card-without-configuration",
                "the card of this release does not hold the options that made it: give them with "
                "{option.mechanism[NAME]}, {option.epsilon[E]} and {option.options[NAME=VALUE]}",
            )
        return None
    if on_card is None or name not in (None, on_card.name):
        assert name is not None
        return MadeBy(build(name, _with_files(parameters)), "the command line", card)
    known = {key.replace("-", "_"): value for key, value in on_card.options.items()}
    mechanism = build(on_card.name, _with_files({**known, **parameters}))
    check_fingerprint(mechanism, card)
    return MadeBy(mechanism, "the command line and the card" if parameters or name else "the privacy card", card)


def _with_files(options: dict[str, object]) -> dict[str, object]:
    """Say which files must be given again, before a loader complains about a name without its folder."""
    for key in ("vectors", "sensitive_list"):
        value = options.get(key)
        if isinstance(value, str) and Path(value).suffix and not Path(value).expanduser().exists():
            raise BadInputError(
                "file-of-the-release-missing",
                "the release was made with the file '{file}', which is not here: give it with "
                f"{{option.options[{key}=PATH]}}, or leave out the attack that needs it with "
                "{option.attacks}",
                file=Path(value).name,
            )
    return options


def check_fingerprint(mechanism: Mechanism, card: Card | None) -> None:
    """Vectors that are not those of the card would make every posterior wrong."""
    metric = None if card is None else card.guarantee.metric
    if metric is None or not metric.fingerprint or not isinstance(mechanism, WordMechanism):
        return
    if mechanism.table.fingerprint != metric.fingerprint:
        raise BadInputError(
            "other-vectors-than-the-card",
            "the word vectors are not those that the card was written for (their fingerprints differ): give the same "
            "file and limit with {option.options[vectors=PATH]} and {option.options[limit=N]}",
        )
