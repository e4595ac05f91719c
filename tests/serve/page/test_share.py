"""The first view: a file becomes a corpus that may be shared; what is told before, shown after, and never sent."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from tests.serve.page.conftest import Opener

SECRET = "zanzibarquux"
ROWS = {
    "weather": ["Will it rain in Paris tomorrow?", "It is snowing again."],
    "music": ["Play a song by Bach.", "Turn the volume up."],
}
RELEASE_SECONDS = 240.0
PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def mail() -> dict[str, Any]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "text", "intent"])
    for number in range(150):
        writer.writerows((number, f"{words}\n{SECRET}", label) for label, texts in ROWS.items() for words in texts)
    return {"name": "mail.csv", "mimeType": "text/csv", "buffer": text.getvalue().encode()}


def test_a_file_becomes_a_corpus_that_is_shown_and_downloaded(open_page: Opener, tmp_path: Path) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install axe-playwright-python"
    ).Axe()
    page = open_page("", reduced_motion="reduce")
    assert page.title() == "Share a corpus · Tacit"
    assert page.is_hidden("#share-form")
    page.set_input_files("#share-file", mail())
    page.wait_for_selector("#share-form:visible")
    assert "About 600 rows" in page.inner_text("#share-rows"), "line breaks inside of quotes are no rows"
    assert (page.input_value("#share-text"), page.input_value("#share-label")) == ("text", "intent")
    page.wait_for_selector("#share-expect p")
    page.click("#share-go")
    page.wait_for_selector("#share-problem .problem:has-text('List the labels')")
    page.fill("#labels-list", "weather, music")
    assert axe.run(page).violations_count == 0
    page.click("#share-go")
    page.wait_for_selector(".corpus figure svg", timeout=1000 * RELEASE_SECONDS)
    assert "sent before" in page.inner_text("#share-cost")
    shown = page.inner_text(".corpus")
    assert SECRET not in page.inner_html(".corpus")
    assert "epsilon 1 per record" in shown
    assert page.locator(".corpus .label-rows").count() == 2
    assert page.locator(".corpus svg.drawing").count() == 3
    with page.expect_download() as download:
        page.click("#corpora a:text-is('the corpus')")
    download.value.save_as(tmp_path / "corpus.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "corpus.csv").read_text(encoding="utf-8"))))
    assert {row["intent"] for row in rows} == set(ROWS)
    for closed in page.locator("summary:visible").all():
        closed.click()
    assert axe.run(page).violations_count == 0
    for kind in ({"color_scheme": "dark"}, PHONE):
        other = open_page("", reduced_motion="reduce", **kind)
        other.wait_for_selector(".corpus figure svg")
        assert other.evaluate(WIDE) == 0
        assert axe.run(other).violations_count == 0


def test_what_cannot_be_read_is_told_and_a_text_file_has_topics(open_page: Opener) -> None:
    page = open_page("")
    page.set_input_files("#share-file", {"name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF"})
    page.wait_for_selector("#share-problem .problem:has-text('cannot be read')")
    assert page.is_hidden("#share-form")
    page.set_input_files("#share-file", {"name": "diary.txt", "mimeType": "text/plain", "buffer": b"one\ntwo\n"})
    page.wait_for_selector("#share-form:visible")
    assert "About 2 rows" in page.inner_text("#share-rows")
    assert page.is_hidden("#share-labels")


def test_the_text_view_begins_with_what_reads_like_language(open_page: Opener) -> None:
    page = open_page("#/text", words=False)
    page.wait_for_function("document.getElementById('mechanism').options.length > 3")
    levels = page.eval_on_selector_all("#mechanism optgroup", "groups => groups.map((group) => group.label)")
    assert levels == ["Whole text at once", "Word by word"]
    usable = page.locator("#mechanism option[value=codebook]:not([disabled])").count()
    assert (page.input_value("#mechanism") == "codebook") is bool(usable)
