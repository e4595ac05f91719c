"""What a notebook shows: a short line, or the card in a frame."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

import tacit
from tacit.card import Card
from tacit.labels import randomize_labels
from tacit.report import Finding, Light, Report, Section, Table
from tests.conftest import small_table
from tests.test_guarantee import approximate, metric, optimized, pure

SECRET = "only in the original <b>"


@pytest.fixture(scope="module")
def release() -> Any:
    return tacit.SanText(epsilon=2.0, vectors=small_table()).rewrite(["w1 w2 w3", "w4"])


def inside(shown: str) -> str:
    """The page that a frame holds."""
    match = re.fullmatch(r'<iframe srcdoc="([^"]*)" title="[^"]*" sandbox style="[^"]*"></iframe>', shown)
    assert match is not None
    return html.unescape(match[1])


def test_c8_a_release_has_a_card_with_what_it_adds_up_to(release: Any):
    card = release.card()
    assert card.guarantee == release.guarantee
    assert (card.facts.rows, card.facts.units, card.facts.longest_row) == (2, 4, 3)
    assert "the longest row here, 3 words" in str(card)
    assert str(card) == card.to_text()
    empty = tacit.SanText(epsilon=2.0, vectors=small_table()).rewrite([])
    assert empty.card().facts.longest_row == 0


def test_c8_a_short_line_says_the_promise_and_no_text(release: Any):
    promise = "metric differential privacy, epsilon 2 per word and unit of distance"
    assert repr(release) == f"<Release of 2 texts: {promise}>"
    assert repr(release.guarantee) == f"<Guarantee of SanText (santext; Yue et al. 2021): {promise}>"
    assert repr(release.card()) == f"<Card for 2 rows: {promise}>"
    void = tacit.SanText(epsilon=2.0, vectors=small_table(), seed=1).rewrite("w1")
    assert repr(void) == "<Release of 1 text: no guarantee>"
    assert "no guarantee: it was drawn with a test seed" in repr(void.guarantee)


def test_c8_the_numbers_of_a_short_line_are_not_rounded():
    assert "epsilon 0.30000000000000004 per word" in repr(pure(0.1 + 0.2))
    assert f"delta {approximate().delta!r}" in repr(approximate())
    assert f"constant {optimized().offset!r}" in repr(optimized()).replace(".0>", ">")


@pytest.mark.parametrize("shown", [pure(), approximate(), metric(), Card(optimized()), pure().voided("a <test>")])
def test_c8_a_notebook_shows_the_card(shown: Any):
    page = inside(shown._repr_html_())
    assert page == (shown if isinstance(shown, Card) else Card(shown)).to_html()
    assert len(repr(shown)) < 250


def test_c8_a_release_is_shown_by_its_card(release: Any):
    assert inside(release._repr_html_()) == release.card().to_html()
    labels = randomize_labels(["a", "b"], ["a", "b"], epsilon=1.0)
    assert repr(labels) == "<LabelRelease of 2 labels: pure differential privacy, epsilon 1 per record>"
    assert inside(labels._repr_html_()) == labels.card().to_html()


def test_c8_a_series_is_shown_by_its_card():
    pandas = pytest.importorskip("pandas")
    import tacit.integrations.pandas

    released = pandas.Series(["w1 w2"]).tacit.release(tacit.SanText(epsilon=2.0, vectors=small_table()))
    assert repr(released).startswith("<SeriesRelease of 1 texts: metric differential privacy")
    assert inside(released._repr_html_()) == released.card().to_html()


def test_c8_a_notebook_keeps_no_original_text_of_a_report():
    quoting = Table("Examples", ["original"], [[SECRET]], private=True)
    counts = Table("Counts", ["found"], [[7]])
    finding = Finding("names", Light.RED, "a claim is false", refuted=True)
    report = Report("Attacks", [Section("Words", findings=[finding], tables=[quoting, counts])])
    assert html.escape(SECRET) in report.to_html()
    page = inside(report._repr_html_())
    assert "only in the original" not in page
    assert "Counts" in page
    assert "left out here" in page
    assert repr(report) == "<Report 'Attacks': 1 findings, the worst is 'bad', a claim is refuted>"
    harmless = Report("Checks", [Section("Words", tables=[counts])])
    assert inside(harmless._repr_html_()) == harmless.to_html()
