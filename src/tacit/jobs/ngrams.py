"""Phrases that many users, or records, write: n-grams of private texts with noisy counts.

made = tacit.jobs.ngrams.ngrams("notes.csv", user_column="author", epsilon=1, longest=5)
made.phrases, made.card
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.account.delta import automatic_delta, check_delta
from tacit.account.release_charge import ReleaseCharge
from tacit.card import Card
from tacit.errors import BadInputError, TacitWarning
from tacit.guarantee import Guarantee, Unit, VoidReason
from tacit.jobs.charging import charging, check_name_for_ledger
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import (
    AutoDelta,
    Cased,
    DatasetOfInput,
    Epsilon,
    Force,
    Format,
    Ledger,
    Output,
    PromisedUsers,
    TestSeed,
    UsualColumn,
)
from tacit.jobs.sketched_rows import PrivateRows
from tacit.jobs.sources import needs_of_source
from tacit.mechanism import TEST_SEED_REASON
from tacit.needs import Ability, needs_of_ledger, needs_of_place
from tacit.noise.source import new_source
from tacit.places import refuse_existing
from tacit.progress import StepProgress, WorkProgress, steps_of
from tacit.text.files import write_columns
from tacit.text.files.partial import write_together
from tacit.text.identity import user_name
from tacit.training.vocabulary.ngrams import UnitRuns, phrase_terms, released_phrases

COMMAND = "tacit vocabulary ngrams"


class NgramsConfig(Config):
    """Private texts, what their phrases may cost, and the table of phrases."""

    job: ClassVar[str] = "vocabulary ngrams"

    data: PrivateRows
    output: Annotated[Output[Path], Field(description="The table of phrases (csv, tsv, jsonl); its card is beside it.")]
    epsilon: Annotated[Epsilon[float], Field(gt=0, description="The privacy budget of one record or user.")]
    column: UsualColumn = None
    user_column: PromisedUsers = None
    longest: Annotated[
        int, Field(ge=1, le=9, description="Words of the longest phrase; each length shares the budget."),
        Option(Group.DATA),
    ] = 5  # fmt: skip
    most_phrases: Annotated[
        int,
        Field(ge=1, description="Different phrases of each length that count of one record or user."),
        Option(Group.PRIVACY),
    ] = 100
    delta: AutoDelta = "auto"
    cased: Cased = False
    format: Format = None
    seed: TestSeed = None
    ledger: Ledger = None
    dataset: DatasetOfInput = None
    force: Force = False

    def needs(self) -> list[Ability]:
        places = needs_of_place(str(self.output))
        return [*needs_of_source(self.data, self.format), *places, *needs_of_ledger(self.ledger)]

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        check_name_for_ledger(self)
        return self

    @property
    def label_columns(self) -> tuple[str, ...]:
        """No labels are read."""
        return ()


@dataclass(frozen=True)
class ReleasedPhrases:
    """Phrases with noisy weighted counts, the shortest first, and of each length the most frequent; and their card."""

    phrases: Mapping[str, float]
    guarantee: Guarantee
    configuration: Mapping[str, object] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.configuration)

    @property
    def by_length(self) -> dict[int, int]:
        """How many phrases there are of each number of words."""
        return dict(sorted(Counter(len(phrase.split()) for phrase in self.phrases).items()))

    def __len__(self) -> int:
        return len(self.phrases)

    def __str__(self) -> str:
        return f"{len(self):,} phrases: {self.guarantee}"

    def columns(self) -> dict[str, list[str]]:
        """The table, column by column."""
        return {
            "phrase": list(self.phrases),
            "words": [str(len(phrase.split())) for phrase in self.phrases],
            "noisy_count": [f"{count:.2f}" for count in self.phrases.values()],
        }


def run(config: NgramsConfig, progress: WorkProgress | None = None) -> ReleasedPhrases:
    """The phrases of private texts, in a table with its card. Every call spends its budget anew."""
    refuse_existing(config.output, force=config.force)
    with charging(config, COMMAND) as charge:
        made = _released(config, charge, progress)
        card = made.card
        beside = {".card.json": card.to_json(), ".card.md": card.to_markdown()}
        write_together({Path(f"{config.output}{ending}"): text for ending, text in beside.items()})
        write_columns(config.output, made.columns(), force=True)
        charge.commit()
    return made


def ngrams(data: Any, *, epsilon: float, output: str | Path, **options: Any) -> ReleasedPhrases:
    """Phrases that many users (or records) write, with noisy counts; a file or data in memory, options as in
    `NgramsConfig`."""
    return run(NgramsConfig(data=data, epsilon=epsilon, output=Path(output), **options))


def _released(config: NgramsConfig, charge: ReleaseCharge, progress: WorkProgress | None) -> ReleasedPhrases:
    step = steps_of(progress)
    units = _units(config, step("reading texts"))
    delta = automatic_delta(len(units)) if config.delta == "auto" else config.delta
    check_delta(delta, len(units))
    source = new_source(config.seed)
    terms = phrase_terms(
        epsilon=config.epsilon,
        delta=delta,
        longest=config.longest,
        most_phrases=config.most_phrases,
        unit=Unit.RECORD if config.user_column is None else Unit.USER,
    )
    guarantee = terms.guarantee
    if not source.secure:
        guarantee = guarantee.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)
    charge.reserve(guarantee)
    shown = released_phrases(units, terms, source, step("counting phrases"))
    if not shown:
        threshold = terms.noise.threshold or 0.0
        warnings.warn(
            TacitWarning(
                f"no word passed the threshold of {threshold:,.1f}, so there are no phrases: raise epsilon, or allow "
                "fewer words or shorter phrases"
            ),
            stacklevel=4,
        )
    # Counts are weighted at each length, so they compare within a length only.
    ordered = sorted(shown, key=lambda phrase: (len(phrase), -shown[phrase], phrase))
    return ReleasedPhrases({" ".join(phrase): shown[phrase] for phrase in ordered}, guarantee, config.identity())


def _units(config: NgramsConfig, progress: StepProgress) -> UnitRuns:
    """The words of each user, or record; private."""
    from tacit.jobs.sketch_input import row_source

    units = UnitRuns()
    row = 0
    for block in row_source(config, progress)():
        for place, text in enumerate(block.texts):
            row += 1
            name = str(row) if config.user_column is None else user_name(block.users[place])
            if not name:
                raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=row)
            units.add(name, text, lowercase=not config.cased)
    if not len(units):
        raise BadInputError("no-rows", "{name} has no rows", name="the data")
    return units
