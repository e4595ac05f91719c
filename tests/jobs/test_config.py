"""Configurations: validated in our words, identified without what only affects running, the same after a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tacit.cli.generated import command_for
from tacit.cli.naming import TERMINAL
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Config, Group, Option, read_mapping

Epsilon = Annotated[float, Field(gt=0, description="Budget of a record."), Option(Group.PRIVACY)]


class Example(Config):
    job = "example"

    data: Annotated[str, Field(description="The file."), Option(Group.DATA, positional=True)]
    epsilon: Epsilon
    columns: Annotated[tuple[str, ...], Field(description="Texts."), Option(Group.DATA)] = ()
    delta: Annotated[float | Literal["auto"], Field(description="Delta."), Option(Group.PRIVACY)] = "auto"
    style: Annotated[Literal["flat", "layer"], Field(description="Style."), Option(Group.TRAINING)] = "flat"
    batch: Annotated[
        int, Field(ge=1, description="Batch."), Option(Group.TRAINING, old_names=("batch_size",), unit="rows")
    ] = 8
    output: Annotated[Path | None, Field(description="Output."), Option(Group.DATA)] = None
    resume: Annotated[bool, Field(description="Go on."), Option(Group.RUN)] = False
    workers: Annotated[int, Field(ge=1, description="Processes."), Option(Group.RUN)] = 1


def test_running_is_no_part_of_the_identity() -> None:
    assert Example(data="a", epsilon=1, workers=4).identity() == Example(data="a", epsilon=1, resume=True).identity()
    assert Example(data="a", epsilon=1).identity() != Example(data="a", epsilon=2).identity()


@pytest.mark.parametrize(
    ("values", "code", "flag"),
    [
        ({"data": "a"}, "missing-option", "--epsilon"),
        ({"data": "a", "epsilon": -1}, "bad-option", "--epsilon"),
        ({"data": "a", "epsilon": 1, "columms": ["x"]}, "unknown-option", "columms"),
        ({"data": "a", "epsilon": 1, "style": "most"}, "bad-option", "--style"),
        ({"data": "a", "epsilon": 1, "columns": [1, {}]}, "bad-option", "--column"),
    ],
)
def test_what_does_not_fit_is_a_code_and_a_sentence(values: dict[str, object], code: str, flag: str) -> None:
    with pytest.raises(BadParameterError) as raised:
        Example(**values)
    assert raised.value.code == code
    assert flag in raised.value.rendered(TERMINAL)


def test_an_option_that_may_be_repeated_takes_one_name() -> None:
    assert Example(data="a", epsilon=1, columns="text") == Example(data="a", epsilon=1, columns=("text",))


@pytest.mark.parametrize("option", ["epsilon", "columns", "style", "batch", "delta", "output"])
def test_an_error_quotes_no_data_that_was_given_as_an_option(option: str) -> None:
    """A frame or a list in the wrong place is private data; only what a person types is quoted."""
    for data in ([["Anna has HIV"]], {"text": "Anna has HIV"}, [{"text": "Anna has HIV"}]):
        with pytest.raises(BadParameterError) as raised:
            Example(**{"data": "a", "epsilon": 1, option: data})
        assert "Anna" not in f"{raised.value} {raised.value.rendered(TERMINAL)} {dict(raised.value.fields)}"


@given(
    epsilon=st.floats(min_value=1e-6, max_value=1e6) | st.just(float("inf")),
    columns=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=3),
    delta=st.just("auto") | st.floats(min_value=0, max_value=1),
)
def test_a_file_gives_the_same_configuration(epsilon: float, columns: list[str], delta: float | str) -> None:
    import tomllib

    config = Example(data='ä "quoted" \\ name.csv', epsilon=epsilon, columns=columns, delta=delta, batch=3)
    assert Example.from_mapping(tomllib.loads(config.to_toml())) == config
    assert Example.model_validate_json(config.model_dump_json()) == config


def test_a_file_of_another_job_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('job = "other"\n')
    with pytest.raises(BadInputError) as raised:
        Example.from_mapping(read_mapping(tmp_path / "a.toml"))
    assert raised.value.code == "another-job"


def test_a_command_gives_the_configuration() -> None:
    seen: list[Example] = []
    command = command_for("example", [Example], seen.append, help="Does nothing.")
    arguments = ["in.csv", "-e", "2", "-c", "q", "--column", "a", "--batch-size", "5", "--delta", "1e-6", "--resume"]
    called = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert called.exit_code == 0, called.output
    assert seen == [Example(data="in.csv", epsilon=2, columns=("q", "a"), batch=5, delta=1e-6, resume=True)]


def test_help_has_headings_defaults_and_no_old_names() -> None:
    called = CliRunner().invoke(command_for("example", [Example], print, help="Does nothing."), ["--help"])
    assert [f"{group.value}:" in called.output for group in (Group.DATA, Group.PRIVACY, Group.RUN)] == [True] * 3
    assert "[default: 8 rows]" in called.output
    assert "flat|layer" in called.output
    assert "--batch-size" not in called.output
