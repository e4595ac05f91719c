"""Rows that belong to users, as a training reads them, and the plan for these users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tacit.jobs.training.by_user import UserTraining
from tacit.jobs.training.planning import check_batch
from tacit.jobs.training.running import read_rows
from tacit.training.user_plans import ExamplePlan, UserPlan, UserTerms, compared
from tacit.training.user_rows import UserRows
from tacit.training.users import Users, group_by_user

USER = "whose row it is"


def read_rows_of_users(data: object, roles: Mapping[str, str], column: str) -> tuple[list[dict[str, str]], Users]:
    """The rows of a file or of data in memory, each as its values by role, and whose they are. A row that names no user
    is refused."""
    rows = read_rows(data, {**roles, USER: column})
    return rows, group_by_user([row.pop(USER) for row in rows], column)


@dataclass(frozen=True)
class PlannedUsers:
    """The plan of a training for users, the rows of theirs that count, and what to say about both. The notes speak of
    public numbers, but for what is left out, which is for the person who trains."""

    plan: UserPlan | ExamplePlan
    rows: UserRows
    notes: tuple[str, ...]


def plan_by_user(config: UserTraining, epsilon: float, users: Users) -> PlannedUsers:
    """The plan of a configuration for these users, by drawing users or their examples."""
    rows = UserRows(users, config.counted_rows)
    check_batch(rows.counted, config.batch)
    more = users.with_more_than(rows.most)
    notes = (
        (f"{more:,} users have more than {rows.most:,} rows: that many of theirs count in a step, drawn anew",)
        if more
        else ()
    )
    plan, reason = _plan(config, epsilon, rows)
    return PlannedUsers(plan, rows, (reason, *notes))


def _plan(config: UserTraining, epsilon: float, rows: UserRows) -> tuple[UserPlan | ExamplePlan, str]:
    terms = UserTerms(
        epsilon=epsilon,
        users=len(rows.users),
        examples=rows.counted,
        group=rows.most,
        batch=config.batch,
        epochs=config.epochs,
        delta=config.chosen_delta,
        adjacency=config.adjacency,
        releases=config.trials,
    )
    if config.unit_sampling == "users":
        return UserPlan.drawing_users(terms), "users are drawn, and each is clipped once"
    if config.unit_sampling == "examples":
        return ExamplePlan.drawing_examples(terms), "the examples of users are drawn, and each is clipped"
    comparison = compared(terms)
    return comparison.chosen, comparison.reason
