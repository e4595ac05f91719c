"""What commands take from the fields of a configuration beyond plain options."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from tacit.cli.generated import acting_group, command_for
from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import MechanismOptions
from tests.cli.sentences import refused


class Example(Config):
    job: ClassVar[str] = "example"

    nominal: Annotated[bool | None, Field(description="Refuse."), Option(Group.PRIVACY, off_name="allow_nominal")] = (
        None
    )
    careful: Annotated[bool, Field(description="Careful."), Option(Group.PRIVACY, variable="EXAMPLE_CAREFUL")] = False
    body_bytes: Annotated[int, Field(description="Body."), Option(Group.RUN, name="body_mb", scale=1_000_000)] = 5_000
    options: MechanismOptions = Field(default_factory=dict)


def called(*arguments: str, **environment: str) -> Example:
    seen: list[Any] = []
    command = command_for("example", [Example], seen.append, help="An example.")
    outcome = CliRunner().invoke(command, list(arguments), env=environment, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return seen[0]


def test_a_yes_or_no_can_be_left_open() -> None:
    assert called().nominal is None
    assert called("--nominal").nominal is True
    assert called("--allow-nominal").nominal is False


def test_a_variable_gives_a_value_where_nothing_else_does() -> None:
    assert called().careful is False
    assert called(EXAMPLE_CAREFUL="1").careful is True


def test_megabytes_are_given_and_bytes_are_kept() -> None:
    assert called().body_bytes == 5_000
    assert called("--body-mb", "0.05").body_bytes == 50_000
    for value in ("nan", "inf", "0", "-1", "much"):
        with refused(BadParameterError, match=r"^--body-mb is a number above 0 and up to 1,000,000"):
            called("--body-mb", value)


def test_options_of_a_mechanism_are_repeated_and_become_a_mapping() -> None:
    assert called("--option", "limit=100", "--option", "spell-out = yes").options == {
        "limit": "100",
        "spell_out": "yes",
    }
    with refused(BadParameterError, match="--option name=value, not 'limit'"):
        called("--option", "limit")


@pytest.mark.parametrize(("arguments", "expected"), [([], ["own"]), (["below"], ["below"]), (["--careful"], ["own"])])
def test_a_group_acts_by_itself_only_without_a_command(arguments: list[str], expected: list[str]) -> None:
    seen: list[str] = []
    below = click.Command("below", callback=lambda: seen.append("below"))
    group = acting_group("group", [below], [Example], lambda options: seen.append("own"), help="A group.")
    assert CliRunner().invoke(group, arguments, catch_exceptions=False).exit_code == 0
    assert seen == expected
    shown = CliRunner().invoke(group, ["--help"]).output
    assert "below" in shown
    assert "--careful" in shown
