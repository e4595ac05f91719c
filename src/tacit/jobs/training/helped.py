"""Options of training on records that is helped by public rows, by a search for settings, or by correlated noise."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import Bands, Noise
from tacit.jobs.sources import Source, needs_of_rows
from tacit.jobs.training.options import RecordTraining
from tacit.jobs.tuning import TuningOption
from tacit.needs import Ability


class HelpedTraining(RecordTraining):
    """Training on records with what may help it: gradients of public rows, a secret search, correlated noise."""

    public_rows: Annotated[
        Source,
        Field(description="Public rows with the columns of the private ones; their gradients help the private steps."),
        Option(Group.TRAINING, metavar="FILE"),
    ] = None
    public_gradients: Annotated[
        Literal["precondition", "blend"] | None,
        Field(description="What gradients of public rows do: precondition (the default) divides private ones by their "
              "root mean square before clipping, blend mixes them in after the noise."),
        Option(Group.TRAINING),
    ] = None  # fmt: skip
    tune: Annotated[
        TuningOption,
        Field(
            description="Choose settings by trials: a file that lists their values. The number of trials is random and "
            "secret, and epsilon pays for the whole search."
        ),
        Option(Group.PRIVACY, metavar="FILE"),
    ] = None
    tune_rows: Annotated[
        Source,
        Field(description="Public rows that score the trials of a search; without them a noisy count of right "
              "predictions on the private records does."),
        Option(Group.PRIVACY, metavar="FILE"),
    ] = None  # fmt: skip

    noise: Annotated[
        Noise[Literal["independent", "banded"]],
        Field(
            description="independent in every step, or banded: each step takes back some noise of those before, and "
            "draws from one of several groups of records."
        ),
    ] = "independent"
    bands: Annotated[
        Bands[int | None],
        Field(description="banded: how many bands, and groups; by default as many as leave the least noise. Each is a "
              "vector as large as what is trained."),
    ] = None  # fmt: skip

    @property
    def noise_epsilon(self) -> float:
        """The budget that noise has to keep; infinite for text that needs none."""
        return math.inf if self.epsilon is None else self.epsilon

    @property
    def reads_vectors(self) -> bool:
        """Whether it learns from vectors in place of texts; those that were released need no noise."""
        return False

    @model_validator(mode="after")
    def _public_gradients_have_rows(self) -> Self:
        if self.public_gradients is not None and self.public_rows is None:
            raise BadParameterError(
                "public-gradients-without-rows",
                "public gradients need public rows: give them with {option.public_rows[FILE]}, or leave out "
                "{option.public_gradients}",
            )
        if self.public_rows is not None and (self.noise_epsilon == math.inf or self.reads_vectors):
            raise BadParameterError(
                "public-rows-without-noise",
                "public rows help steps that have noise: leave out {option.public_rows}, or train on texts with a "
                "finite {option.epsilon}",
            )
        return self

    @model_validator(mode="after")
    def _a_search_has_noise_and_one_plan(self) -> Self:
        if self.tune is None:
            if self.tune_rows is not None:
                raise BadParameterError(
                    "nothing-to-tune",
                    "rows that score trials need trials: give {option.tune[FILE]}, or leave out {option.tune_rows}",
                )
            return self
        if self.noise_epsilon == math.inf or self.reads_vectors:
            raise BadParameterError(
                "search-without-noise",
                "a secret search is for training on texts with a finite {option.epsilon}: without noise, compare "
                "settings as you like",
            )
        if self.grow_to is not None:
            raise BadParameterError(
                "search-with-phases", "a search has batches of one size: leave out {option.grow_to} or {option.tune}"
            )
        return self

    @model_validator(mode="after")
    def _banded_noise_has_one_plan(self) -> Self:
        if self.noise == "independent":
            if self.bands is not None:
                raise BadParameterError(
                    "bands-without-banded-noise",
                    "bands are those of banded noise: give {option.noise[banded]}, or leave out {option.bands}",
                )
            return self
        if self.noise_epsilon == math.inf or self.reads_vectors:
            raise BadParameterError(
                "banded-noise-without-noise",
                "banded noise is for training on texts with a finite {option.epsilon}: leave out {option.noise}",
            )
        if self.tune is not None or self.grow_to is not None:
            raise BadParameterError(
                "banded-noise-with-another-plan",
                "banded noise has a plan of its own: leave out {option.tune} and {option.grow_to}, or {option.noise}",
            )
        return self

    @property
    def chosen_public_gradients(self) -> str:
        """How public rows help; "" without any."""
        return "" if self.public_rows is None else self.public_gradients or "precondition"

    def needs_of_help(self) -> list[Ability]:
        """The packages that reading public rows needs."""
        return [*needs_of_rows(self.public_rows), *needs_of_rows(self.tune_rows)]
