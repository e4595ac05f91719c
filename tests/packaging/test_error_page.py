"""docs/errors.md holds every code of the source, and codes are names of causes."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    place = importlib.util.spec_from_file_location("error_page", ROOT / ".ci" / "error_page.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    sys.modules["error_page"] = module
    place.loader.exec_module(module)
    return module


def test_the_page_is_what_the_source_says(program: ModuleType) -> None:
    written = program.PAGE.read_text(encoding="utf-8")
    assert written == program.page(), "run 'python .ci/error_page.py' and commit docs/errors.md"


def test_codes_are_short_and_sentences_say_something(program: ModuleType) -> None:
    sites = program.sites()
    assert len(sites) > 900
    for site in sites:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", site.code), site
        assert len(site.code) <= 40, site
        assert site.sentence.strip(), site


def test_sentences_are_shown_with_options_in_bold(program: ModuleType) -> None:
    sentence = "{rows:,} rows: give {option.batch}, {option.epsilon[3]} or {{a}}"
    assert program.shown(sentence) == "{rows} rows: give **batch**, **epsilon 3** or {a}"
