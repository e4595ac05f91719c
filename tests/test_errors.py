"""Errors: a code and fields for programs, a sentence in the reader's words, whole after a trip between processes."""

from __future__ import annotations

import pickle

import pytest

from tacit.errors import PYTHON, BadInputError, BadParameterError, TacitError


class FlagNaming:
    def name(self, option: str) -> str:
        return f"--{option.replace('_', '-')}"

    def with_value(self, option: str, value: str) -> str:
        return f"{self.name(option)} {value}"


def few_rows() -> BadInputError:
    return BadInputError(
        "fewer-rows-than-batch",
        "{rows:,} rows are fewer than {batch:,}: give a smaller {option.batch}, for example "
        "{option.batch_size[100]}, and {option.epsilon[inf]}",
        rows=1200,
        batch=5000,
    )


def test_a_sentence_names_options_as_its_reader_does() -> None:
    error = few_rows()
    assert str(error) == (
        "1,200 rows are fewer than 5,000: give a smaller batch, for example batch_size=100, and epsilon=inf"
    )
    assert error.rendered(PYTHON) == str(error)
    assert error.rendered(FlagNaming()) == (
        "1,200 rows are fewer than 5,000: give a smaller --batch, for example --batch-size 100, and --epsilon inf"
    )


def test_programs_see_code_and_fields() -> None:
    error = few_rows()
    assert (error.code, dict(error.fields)) == ("fewer-rows-than-batch", {"rows": 1200, "batch": 5000})


def test_values_with_braces_are_not_templates() -> None:
    error = TacitError("odd-name", "there is no file '{name}'", name="{option.secret}")
    assert str(error) == "there is no file '{option.secret}'"
    assert str(TacitError("a {whole} sentence")) == "a {whole} sentence"


def test_a_lone_sentence_has_the_code_of_its_class() -> None:
    error = BadParameterError("epsilon must be positive")
    assert error.code == "BadParameterError"
    assert error.rendered(FlagNaming()) == "epsilon must be positive"


@pytest.mark.parametrize("error", [few_rows(), TacitError("a sentence {}")])
def test_errors_travel_between_processes(error: TacitError) -> None:
    error.add_note("what remains")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.code, copy.fields) == (str(error), error.code, error.fields)
    assert copy.rendered(FlagNaming()) == error.rendered(FlagNaming())
    assert copy.__notes__ == ["what remains"]
