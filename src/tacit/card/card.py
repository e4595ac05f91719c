"""`Card`: a guarantee and its release, for machines (JSON) and for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tacit.card.content import Content, content, guarantee_rows
from tacit.card.facts import ReleaseFacts
from tacit.card.page import as_page
from tacit.card.sentence import plain_sentence
from tacit.card.strength import Verdict, bound_heading, bound_text, strength, totals
from tacit.card.text import as_markdown, as_text
from tacit.card.versions import CARD_VERSION, READABLE_VERSIONS
from tacit.card_words import promise_text
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.notebook import framed
from tacit.version import __version__


@dataclass(frozen=True)
class Card:
    """A guarantee with the facts of its release, which renders in every format.

    `configuration` holds the options that made a model or a vocabulary, by name (`Config.identity`); for a file they
    stand with the other facts of its release. `shuffled` is a second promise, where rows were released in a secret
    random order.
    """

    guarantee: Guarantee
    facts: ReleaseFacts | None = None
    version: str = field(default=__version__)
    configuration: Mapping[str, object] = field(default_factory=dict)
    shuffled: Guarantee | None = None

    @property
    def made_by(self) -> Mapping[str, object]:
        """The options that made what this card lies beside; empty where it does not say."""
        return self.configuration or ({} if self.facts is None else self.facts.configuration)

    @property
    def verdict(self) -> Verdict | None:
        """The worst of the verdicts on this card; none where nothing is promised."""
        verdicts = {strength(exponent) for _, exponent, _ in totals(self.guarantee, self.facts)}
        return max(verdicts, key=list(Verdict).index, default=None)

    @property
    def worst_line(self) -> str:
        """The line of this card with the largest bound, in words; empty where nothing is promised."""
        lines = list(totals(self.guarantee, self.facts))
        if not lines:
            return ""
        what, exponent, note = max(lines, key=lambda line: line[1])
        return f"{what}, {bound_heading(self.guarantee)} {bound_text(exponent, note)}"

    @property
    def is_nominal(self) -> bool:
        """Whether a line of this card says that the bound no longer protects, or nothing is promised at all."""
        return not self.guarantee.is_private or self.verdict is Verdict.NOMINAL

    # Machines -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "card_version": CARD_VERSION,
            "tacit_version": self.version,
            "sentence": plain_sentence(self.guarantee),
            "guarantee": self.guarantee.to_dict(),
            "in_words": [list(row) for row in guarantee_rows(self.guarantee)],
            "release": None if self.facts is None else _jsonable(asdict(self.facts)),
            **({"configuration": dict(self.configuration)} if self.configuration else {}),
            **({} if self.shuffled is None else {"shuffled": self.shuffled.to_dict()}),
            "totals": [
                {"what": what, "exponent": _finite(exponent), "note": note}
                for what, exponent, note in totals(self.guarantee, self.facts)
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Card:
        try:
            data = json.loads(text)
            if data["card_version"] not in READABLE_VERSIONS:
                raise BadInputError(
                    "card-version",
                    "this card has version {version}, and this Tacit reads the versions {readable}: use a newer Tacit",
                    version=data["card_version"],
                    readable=" and ".join(map(str, READABLE_VERSIONS)),
                )
            release = data.get("release")
            facts = None
            if release is not None:
                for name in ("columns", "kept_columns", "randomized_columns"):
                    release[name] = tuple(release.get(name, ()))
                facts = ReleaseFacts(**release)
            second = data.get("shuffled")
            return cls(
                Guarantee.from_dict(data["guarantee"]),
                facts,
                data["tacit_version"],
                data.get("configuration", {}),
                None if second is None else Guarantee.from_dict(second),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInputError(
                "not-a-card",
                "this is not a privacy card: {error} at {reason}",
                error=type(error).__name__,
                reason=str(error),
            ) from error

    @classmethod
    def of_file(cls, path: Path) -> Card:
        """The card in a JSON file."""
        return cls.from_json(path.read_text(encoding="utf-8"))

    # People ---------------------------------------------------------------------------------------------------

    def content(self) -> Content:
        """The text of this card, in the words of its readers."""
        return content(self.guarantee, self.facts, self.version, self.shuffled)

    def to_text(self) -> str:
        """The card for a terminal, without color."""
        return as_text(self.content())

    def to_markdown(self) -> str:
        """The card for a repository or a data sheet."""
        return as_markdown(self.content())

    def to_html(self) -> str:
        """The card as one HTML page without anything to load."""
        return as_page(self.content(), self.verdict)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        rows = "" if self.facts is None else f" for {self.facts.rows:,} rows"
        return f"<Card{rows}: {promise_text(self.guarantee)}>"

    def _repr_html_(self) -> str:
        return framed(self.to_html(), "Privacy card")


def for_file(promised: Guarantee, kept: Sequence[str], *, shuffled: bool = False) -> Guarantee:
    """The guarantee of the mechanism, with what a file shows beside the rewritten texts."""
    copied = [f"the column '{name}', which is copied as it is" for name in kept]
    rows = "how many rows there are" if shuffled else "how many rows there are, and their order"
    if promised.unit.is_part_of_text:
        rows = "how many rows there are, their order, and which texts are empty"
    return promised.also_not_covered(rows, *copied)


def _jsonable(data: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
