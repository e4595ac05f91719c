"""The options of `tacit topics`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.charging import check_name_for_ledger
from tacit.jobs.config import Config, Group, Varied
from tacit.jobs.fields import (
    USUAL_POOLS,
    AutoDelta,
    DatasetOfInput,
    Epsilon,
    Force,
    Format,
    Ledger,
    MostWords,
    Output,
    Pools,
    SynthesisWay,
    TestSeed,
    Topics,
    UserColumn,
    UsualColumn,
)
from tacit.jobs.sketched_rows import PrivateRows
from tacit.jobs.sources import needs_of_source
from tacit.needs import Ability, needs_of_ledger
from tacit.places import refuse_existing

ENDINGS: Final = (".html", ".csv", ".json")
WORDS_OF_RECORD, WORDS_OF_USER = 4, 16
"""Words that count, chosen on CLINC150 and AG News: more of them share the budget, and fewer pass the threshold."""


def several_paths(value: object) -> object:
    """One path as a list of one."""
    return (value,) if isinstance(value, str | Path) else value


class TopicsConfig(Config):
    """Private texts, what their topics may cost, and the files that show them."""

    job: ClassVar[str] = "topics"

    data: PrivateRows
    output: Annotated[
        Output[tuple[Path, ...]],
        BeforeValidator(several_paths),
        Field(description="The page (.html), table (.csv) or JSON to write; may be repeated, at no further cost."),
    ] = (Path("topics.html"),)
    epsilon: Annotated[Epsilon[float], Field(gt=0, description="The privacy budget of one text, or user.")]
    column: UsualColumn = None
    by: Annotated[
        SynthesisWay[Literal["cells", "lda"]],
        Field(description="How topics are made: 'cells' counts texts in public cells, 'lda' fits words of a list."),
        Varied(group=Group.MODEL, metavar="cells|lda"),
    ] = "cells"
    topics: Annotated[
        Topics[int | None],
        Field(ge=2, le=1_000, description="How many topics; by default 20 to 100, by the noisy counts."),
    ] = None
    user_column: Annotated[
        UserColumn[str | None],
        Field(description="The column that says who wrote a text: the promise is then made to users."),
        Varied(group=Group.PRIVACY),
    ] = None
    delta: AutoDelta = "auto"
    most_words: Annotated[
        MostWords[int | None],
        Field(description="Different words of a text (4 by default) or user (16) that count; others are left out."),
    ] = None
    pools: Annotated[
        Pools,
        Field(description="Public sentences that cells are made of: a name of 'tacit pool list', or a file of 'tacit "
              "pool build'; may be repeated."),
        Varied(group=Group.MODEL),
    ] = USUAL_POOLS  # fmt: skip
    format: Format = None
    seed: TestSeed = None
    ledger: Ledger = None
    dataset: DatasetOfInput = None
    force: Force = False

    def needs(self) -> list[Ability]:
        return [*needs_of_source(self.data, self.format), *needs_of_ledger(self.ledger)]

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        check_name_for_ledger(self)
        return self

    @property
    def label_columns(self) -> tuple[str, ...]:
        """No labels are read."""
        return ()

    @property
    def words_that_count(self) -> int:
        """The most different words of a unit that count."""
        return self.most_words or (WORDS_OF_RECORD if self.user_column is None else WORDS_OF_USER)

    def check_files(self) -> None:
        """Refuse files that cannot be written, before anything is read or spent."""
        for path in self.output:
            if path.suffix not in ENDINGS:
                raise BadParameterError(
                    "unknown-ending",
                    "{option.output} writes a page, a table or JSON: end the name in {endings}",
                    endings=" or ".join(ENDINGS),
                )
            refuse_existing(path, force=self.force)
