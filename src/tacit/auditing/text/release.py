"""Which mechanism made a release: from the privacy card beside it, or from what the user says.

`tacit rewrite` writes its command on the card, without folders. So a mechanism whose parts have public names can be
built again from the card alone; files (vectors, word lists) must be given again, and the fingerprint of the metric on
the card says whether they are the same ones.
"""

from __future__ import annotations

import shlex
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
_IGNORED = {
    "column", "keep", "user-column", "user-mode", "documents-per-user", "randomize", "label-epsilon", "labels", "seed",
}  # fmt: skip


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
        return Card.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-card",
            "the card {name} cannot be read: copy it again, or give {option.mechanism}",
            name=path.name,
        ) from error


def mechanism_in(command: str) -> tuple[str, dict[str, str]] | None:
    """The mechanism and its options in a `tacit rewrite` command, as the card quotes it."""
    words = shlex.split(command)
    if words[:2] != ["tacit", "rewrite"]:
        return None
    name: str | None = None
    options: dict[str, str] = {}
    for flag, value in zip(words[2::2], words[3::2], strict=False):
        key = flag.removeprefix("--")
        if key == "mechanism":
            name = value
        elif key == "option":
            part, _, setting = value.partition("=")
            options[part] = setting
        elif key not in _IGNORED:
            options[key] = value
    return None if name is None else (name, options)


def made_by(private: object, name: str | None, epsilon: float | None, options: Mapping[str, object]) -> MadeBy | None:
    """The mechanism of a release; None when neither a card nor the user tells it."""
    card = card_beside(private)
    from_card = None if card is None or card.facts is None else mechanism_in(card.facts.command)
    parameters = {key.replace("-", "_"): str(value) for key, value in options.items()}
    if epsilon is not None:
        parameters["epsilon"] = str(epsilon)
    if name is None and from_card is None:
        if parameters:
            raise BadParameterError(
                "options-without-mechanism",
                "say which mechanism the options belong to, with {option.mechanism[NAME]}",
            )
        return None
    if from_card is None or name not in (None, from_card[0]):
        assert name is not None
        return MadeBy(build(name, _with_files(parameters)), "the command line", card)
    mechanism = build(from_card[0], _with_files({**from_card[1], **parameters}))
    check_fingerprint(mechanism, card)
    return MadeBy(mechanism, "the command line and the card" if parameters or name else "the privacy card", card)


def _with_files(options: dict[str, str]) -> dict[str, str]:
    """Say which files must be given again, before a loader complains about a name without its folder."""
    for key in ("vectors", "sensitive_list"):
        value = options.get(key)
        if value is not None and Path(value).suffix and not Path(value).expanduser().exists():
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
