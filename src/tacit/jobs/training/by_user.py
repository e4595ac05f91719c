"""Options of training whose promise is made to users, and its plan."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import PromisedUsers
from tacit.jobs.training.options import RecordTraining

T = TypeVar("T")
RowsPerUser = Annotated[
    T,
    Field(ge=1, description="Most rows of a user that count in a step, drawn anew each time."),
    Option(Group.PRIVACY),
]
USUAL_ROWS: Final = 16
"""Rows of a user that count in a step, unless the options say otherwise: a public number, whatever users have."""


class UserTraining(RecordTraining):
    """Training on records that may belong to users."""

    user_column: PromisedUsers = None
    unit_sampling: Annotated[
        Literal["auto", "users", "examples"],
        Field(
            description="What a step draws, with a column of users: users (each clipped once), examples (each clipped, "
            "their number accounted for), or auto: whichever needs less noise by the plan alone."
        ),
        Option(Group.PRIVACY),
    ] = "auto"
    rows_per_user: RowsPerUser[int | None] = None

    @property
    def counted_rows(self) -> int:
        """The most rows of a user that count in a step."""
        return USUAL_ROWS if self.rows_per_user is None else self.rows_per_user

    @model_validator(mode="after")
    def _users_have_a_column_and_one_plan(self) -> Self:
        if self.user_column is None:
            if self.unit_sampling != "auto" or self.rows_per_user is not None:
                raise BadParameterError(
                    "users-without-column",
                    "{option.unit_sampling} and {option.rows_per_user} are for rows that belong to users: name their "
                    "column with {option.user_column}, or leave them out",
                )
            return self
        if self.grow_to is not None:
            raise BadParameterError(
                "users-with-another-plan",
                "a training for users has a plan of its own: leave out {option.grow_to}, or {option.user_column}",
            )
        if self.unit_sampling == "examples" and self._replaces_users:
            raise BadParameterError(
                "replaced-user-by-examples",
                "drawing the examples of users is accounted for adding or removing a user: leave out "
                "{option.replace_one}, or choose {option.unit_sampling[users]}",
            )
        return self

    @property
    def _replaces_users(self) -> bool:
        return bool(self.__dict__.get("replace_one")) and self.epsilon != math.inf
