"""Where weights, words and text of a run come from, and what that does to its promise.

A guarantee speaks of the records that a run reads. Starting weights may have read others, or the same ones before:

* weights from elsewhere are assumed to be trained on public text; the card says so;
* weights that Tacit trained on *declared public* text are public;
* weights with a private card keep their promise to their own records: a record in both data sets has both budgets,
  which add up, and the card says so;
* weights that Tacit trained without privacy and without such a declaration void the guarantee of whatever is made from
  them: their records would be unprotected, and nobody could see it.

A vocabulary that was learned privately from the same records is paid for by its own budget, which is added. Text that a
mechanism has released already may be trained on without noise: that is post-processing, and its card is the promise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.card import Card
from tacit.errors import BadInputError, TacitError
from tacit.guarantee import Guarantee, Provenance

CARD = "card.json"
SETTINGS = "task.json"
VOCABULARY_CARD = "vocabulary-card.json"


@dataclass(frozen=True)
class Origin:
    """start: the card of the starting weights; start_public: the public text they were trained on, if it was declared;
    vocabulary: the card of a vocabulary learned from the same records; public: the name of the training text, declared
    public; released: the card of the training text, if a mechanism released it; from_scratch: random weights."""

    start: Guarantee | None = None
    start_public: str | None = None
    vocabulary: Guarantee | None = None
    public: str | None = None
    released: Guarantee | None = None
    from_scratch: bool = False

    def with_training(self, own: Guarantee, model: str) -> Guarantee:
        """What the trained weights promise."""
        promise = self._of_data(own)
        if self.vocabulary is not None and promise.is_private:
            promise = promise.then(self.vocabulary)
        return self._of_start(promise, model)

    def _of_data(self, own: Guarantee) -> Guarantee:
        if self.released is not None:
            return replace(
                self.released,
                parameters={**self.released.parameters, **own.parameters},
                history=(*self.released.history, f"{own.mechanism} on the released text: post-processing"),
                provenance=(*self.released.provenance, *own.provenance),
            )
        if self.public is not None and not own.is_private:
            return replace(own, void=f"it was trained without noise, on text that was declared public: {self.public}")
        return own

    def _of_start(self, promise: Guarantee, model: str) -> Guarantee:
        name = "pre-trained weights"
        if self.from_scratch:
            return replace(promise, provenance=(*promise.provenance, Provenance("starting weights", "random")))
        if self.start is None:
            source = f"{model}, assumed to be trained on public text"
            return replace(promise, provenance=(*promise.provenance, Provenance(name, source)))
        if self.start_public is not None:
            source = f"{model}, trained on {self.start_public}, which was declared public"
            return replace(promise, provenance=(*promise.provenance, Provenance(name, source)))
        if not self.start.is_private:
            return promise.voided(f"it started from weights without a guarantee ({model}: {self.start.void})")
        described = (
            f"epsilon {self.start.epsilon:.4g}, delta {self.start.delta:.3g} for one {self.start.unit.value}, between "
            f"{self.start.adjacency.value}"
        )
        return replace(
            promise,
            provenance=(*promise.provenance, Provenance(name, f"{model}, trained privately by Tacit: {described}")),
        ).also_not_covered(
            f"what the starting weights learned from their own records ({described}); a {promise.unit.value} in both "
            "data sets has both budgets added up"
        )

    def settings(self) -> dict[str, Any]:
        return {} if self.public is None else {"public": self.public}


def starting_weights(folder: str | Path) -> Origin:
    """What a model folder says about itself; nothing if it is a hub name or was not made by Tacit."""
    place = Path(folder)
    start = _guarantee(place / CARD)
    public = None
    if (place / SETTINGS).is_file():
        public = json.loads((place / SETTINGS).read_text(encoding="utf-8")).get("public")
    return Origin(start=start, start_public=public, vocabulary=_guarantee(place / VOCABULARY_CARD))


def released_text(path: Path, data: str, rows: int, read: Sequence[str]) -> Guarantee:
    """The promise of a released file, from its card: `read` are the columns whose text the model learns.
    The card must be that of this file, and they must have passed the mechanism; columns that were kept are named on the
    card already."""
    if not path.is_file():
        raise BadInputError(
            f"there is no card {path}: give the one that 'tacit rewrite' wrote beside the released file"
        )
    card = _card(path)
    if not card.guarantee.is_private:
        raise BadInputError(f"the card {path} promises nothing ({card.guarantee.void}): train with an epsilon instead")
    facts = card.facts
    if facts is None or facts.output != Path(data).name or facts.rows != rows:
        described = "no file" if facts is None else f"{facts.output} with {facts.rows:,} rows"
        raise BadInputError(
            f"the card {path} speaks of {described}, not of {Path(data).name} with {rows:,}: give the card that was "
            "written with this file, or train with an epsilon"
        )
    for column in read:
        if column not in facts.columns:
            raise BadInputError(
                f"by its card the column '{column}' of {data} was not rewritten, so nothing protects it: read one of "
                f"{', '.join(facts.columns)}, or train with an epsilon"
            )
    return card.guarantee


def _guarantee(path: Path) -> Guarantee | None:
    return _card(path).guarantee if path.is_file() else None


def _card(path: Path) -> Card:
    try:
        return Card.from_json(path.read_text(encoding="utf-8"))
    except (TacitError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{path} is not a privacy card: {error}") from error
