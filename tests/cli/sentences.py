"""Errors as a terminal shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tacit.cli.naming import TERMINAL
from tacit.errors import TacitError


@contextmanager
def refused(kind: type[TacitError], match: str) -> Iterator[pytest.ExceptionInfo[TacitError]]:
    """`pytest.raises` for an error of ours, whose sentence is matched in the words of a terminal."""
    with pytest.raises(kind) as caught:
        yield caught
    sentence = caught.value.rendered(TERMINAL)
    assert re.search(match, sentence), sentence
