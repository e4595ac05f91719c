"""Several results as pages: which page is called what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import BadInputError
from tacit.experiments.pages import page_names, results_pages
from tests.experiments.test_report import results


def test_c8_two_sizes_of_an_experiment_have_a_page_each():
    result = [results(), replace(results(), size="full")]
    assert page_names(result) == ["a-quick", "a-full"]
    pages = results_pages(result, "command", Path("x/all.md"))
    assert list(pages) == [Path("x/all.md"), Path("x/all/a-quick.md"), Path("x/all/a-full.md")]
    assert "(all/a-full.md)" in pages[Path("x/all.md")]
    assert "(../all.md)" in pages[Path("x/all/a-full.md")]


def test_c8_two_results_of_the_same_experiment_do_not_replace_each_other():
    with pytest.raises(BadInputError, match="2 of the results are of the experiment 'a-quick'"):
        page_names([results(), results()])
