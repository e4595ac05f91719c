"""Errors: a code and fields for programs, a sentence in the reader's words, whole after a trip between processes."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
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
    assert str(TacitError("odd-format", "write {{text}}")) == "write {text}"


def test_an_error_needs_a_code() -> None:
    with pytest.raises(TypeError):
        BadParameterError("epsilon must be positive")  # type: ignore[call-arg]


def test_the_same_cause_as_an_error_of_another_class() -> None:
    error = BadParameterError.of(few_rows())
    assert isinstance(error, BadParameterError)
    assert (error.code, error.fields, str(error)) == (few_rows().code, few_rows().fields, str(few_rows()))


def test_plain_fields_fit_into_json() -> None:
    error = TacitError("odd", "x", count=np.int64(3), share=np.float32(0.5), path=Path("a"), none=None, no=math.inf)
    assert error.plain_fields() == {"count": 3, "share": 0.5, "path": "a", "none": None, "no": "inf"}
    json.dumps(error.plain_fields(), allow_nan=False)


@pytest.mark.parametrize("error", [few_rows(), TacitError("odd", "a sentence {{}} of {path}", path=Path("a"))])
def test_errors_travel_between_processes(error: TacitError) -> None:
    error.add_note("what remains")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.code, copy.fields) == (str(error), error.code, error.fields)
    assert copy.rendered(FlagNaming()) == error.rendered(FlagNaming())
    assert copy.__notes__ == ["what remains"]
