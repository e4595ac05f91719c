"""The first view: a file becomes a corpus that may be shared; what is told before, shown after, and never sent."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import tacit
from tacit.card import Card
from tacit.matching.pool import load_pool
from tests.serve.page.conftest import Opener

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECRET = "zanzibarquux"
ROWS = {
    "weather": ["Will it rain in Paris tomorrow?", "It is snowing again."],
    "music": ["Play a song by Bach.", "Turn the volume up."],
}
PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def mail() -> dict[str, object]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "text", "intent"])
    for number in range(150):
        writer.writerows((number, f"{words}\n{SECRET}", label) for label, texts in ROWS.items() for words in texts)
    return {"name": "mail.csv", "mimeType": "text/csv", "buffer": text.getvalue().encode()}


@pytest.fixture(scope="module")
def view() -> str:
    """What the service says about a corpus, made of a small pool by its own functions."""
    from tacit.jobs.release_report import public_release, release_view
    from tacit.matching.corpus import matched_corpus
    from tacit.serve.synthesis import corpus_view

    rows = [{"text": words, "intent": label} for label, texts in ROWS.items() for words in texts * 150]
    sketch = tacit.sketch(rows, label_column="intent", labels=list(ROWS), epsilon=1.0).sketch
    whole = load_pool("general")
    pool = replace(whole, sentences=whole.sentences[:2_000], source_ids=whole.source_ids[:2_000])
    corpus = matched_corpus(sketch, [pool], rows=300)
    release = public_release(sketch, [pool], corpus.texts, corpus.labels, Card(corpus.guarantee))
    return corpus_view(release_view(release)).model_dump_json()


def with_release(view: str) -> Callable[[Page], None]:
    """Let a page meet a service that has released this corpus: the tests of the service make a real one."""
    job = {
        "id": "0" * 32, "kind": "synthesize", "name": "mail.csv", "format": "csv", "settings": {}, "state": "done",
        "rows": 300, "units": 300, "bytes_done": 9, "total_bytes": 9, "created": "2026-11-18T07:00:00.000+00:00",
        "expires": "2026-11-19T07:00:00+00:00", "error": None, "resumable": False,
    }  # fmt: skip

    def init(page: Page) -> None:
        page.route("**/v1/jobs", lambda route: route.fulfill(json={"jobs": []}))
        page.route("**/v1/jobs/synthesize", lambda route: route.fulfill(json=job, status=202))
        page.route("**/v1/jobs/*/view", lambda route: route.fulfill(body=view, content_type="application/json"))

    return init


@pytest.mark.parametrize("kind", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_a_file_becomes_a_corpus_that_is_shown(open_page: Opener, view: str, kind: dict[str, object]) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install axe-playwright-python"
    ).Axe()
    page = open_page("", init=with_release(view), reduced_motion="reduce", **kind)
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
    with page.expect_request("**/v1/jobs/synthesize") as sent:
        page.click("#share-go")
    body = sent.value.post_data_buffer
    for words in (b'"labels":["weather","music"]', b'"epsilon":1,', b'"label_column":"intent"'):
        assert words in body
    page.wait_for_selector(".corpus figure svg")
    assert "sent before" in page.inner_text("#share-cost")
    assert "epsilon 1 per record" in page.inner_text(".corpus")
    assert page.locator(".corpus .label-rows").count() == 2
    assert page.locator(".corpus svg.drawing").count() == 3
    names = page.locator("#corpora .downloads a").all_inner_texts()
    assert {"the corpus", "the sketch", "the report", "the attribution", "card.json"} <= set(names)
    page.evaluate("() => document.querySelectorAll('#view-share details').forEach((part) => (part.open = true))")
    assert page.evaluate(WIDE) <= 0
    violations = axe.run(page)
    assert violations.violations_count == 0, violations.generate_report()


def test_two_columns_of_labels_are_sent_together(open_page: Opener, view: str) -> None:
    page = open_page("", init=with_release(view))
    assert page.is_hidden("#share-more")
    page.set_input_files("#share-file", mail())
    page.wait_for_selector("#share-more:visible")
    page.evaluate("() => document.querySelectorAll('#view-share details').forEach((part) => (part.open = true))")
    page.fill("#labels-list", "weather, music")
    page.select_option("#share-label-2", "id")
    page.check("#share-evolve")
    page.click("#share-go")
    page.wait_for_selector("#share-problem .problem:has-text('second column')")
    page.fill("#labels-list-2", "1\n2")
    with page.expect_request("**/v1/jobs/synthesize") as sent:
        page.click("#share-go")
    body = sent.value.post_data_buffer
    assert b'"label_columns":["intent","id"]' in body
    assert b'"labels_of":{"intent":["weather","music"],"id":["1","2"]}' in body
    assert b'"evolve":2' in body


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
    page.wait_for_selector("#mechanism option[value=santext]", state="attached")
    levels = page.eval_on_selector_all("#mechanism optgroup", "groups => groups.map((group) => group.label)")
    assert levels == ["Whole text at once", "Word by word"]
    usable = page.locator("#mechanism option[value=codebook]:not([disabled])").count()
    assert (page.input_value("#mechanism") == "codebook") is bool(usable)
