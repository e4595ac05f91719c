"""Comparison, files, reports, ledger, keys, errors; themes, phones and accessibility."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.serve.page.conftest import Opener, Service, only_mechanisms

if TYPE_CHECKING:
    from playwright.sync_api import Page

FEW = ("santext", "santext+", "custext")
CSV = b"id,text,topic\n" + b"".join(b"%d,the old doctor lives in london,health\n" % row for row in range(50))
PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}


def compare(page: Page) -> None:
    page.fill("#compare-epsilon", "400")
    page.click("text=Compare >> nth=-1")
    page.wait_for_selector("#compare[aria-busy=true]", state="detached")
    page.wait_for_selector("#compare .comparison")


def test_mechanisms_are_compared_at_one_guarantee_of_the_whole_text(open_page: Opener) -> None:
    page = open_page(init=only_mechanisms(*FEW))
    page.wait_for_selector(".result .words")
    page.fill("#compare-tokens", "10")
    with page.expect_response(
        lambda response: response.url.endswith("/v1/calibrate") and "santext" in response.request.post_data
    ) as answer:
        compare(page)
    calibrated = answer.value.json()
    bound = calibrated["guarantee"]["totals"][0]["exponent"]
    assert bound <= 400 + 1e-6
    assert bound == pytest.approx(400, rel=1e-3)
    rows = page.locator(".comparison tbody tr")
    cells = rows.all_inner_texts()
    assert len(cells) == 2  # SanText+ has no bound for whole texts
    assert any("CusText" in row and "same public output sets" in row for row in cells)
    assert "SanText+" in page.locator("#compare details").text_content()
    assert page.locator(".comparison .words").count() == 2
    row = rows.filter(has_text="CusText")
    shown = float(row.locator("td b").inner_text())
    row.get_by_role("button").click()
    assert page.input_value("#mechanism") == "custext"
    assert float(page.input_value("#epsilon")) == pytest.approx(shown, rel=1e-3)


def test_a_file_is_rewritten_with_progress_result_and_card(page: Page, tmp_path: Path) -> None:
    page.click("label:has(input[name=source][value=file])")
    page.set_input_files("#file", {"name": "mail <b>.csv", "mimeType": "text/csv", "buffer": CSV})
    page.wait_for_selector("fieldset.column")
    assert page.is_checked("fieldset:has-text('text') input[value=rewrite]")
    page.check("fieldset:has-text('topic') input[value=keep]")
    page.click("#go")
    page.wait_for_selector("#jobs a:text-is('the file')")
    assert page.inner_text("#jobs h3") == "mail <b>.csv"
    assert "50 rows" in page.inner_text("#jobs")
    assert "sent before" in page.inner_text("#cost")
    with page.expect_download() as download:
        page.click("#jobs a:text-is('the file')")
    download.value.save_as(tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text(encoding="utf-8"))))
    assert len(rows) == 50
    assert set(rows[0]) == {"text", "topic"}
    assert {row["topic"] for row in rows} == {"health"}
    assert len({row["text"] for row in rows}) > 1
    with page.expect_download() as download:
        page.click("#jobs a:text-is('card.json')")
    page.wait_for_function("document.querySelector('#jobs .reading').textContent.includes('odds')")
    page.click("#jobs button:has-text('Delete')")
    page.wait_for_selector("#jobs-empty:visible")


def test_c7_a_pdf_is_told_what_can_be_read(page: Page) -> None:
    page.click("label:has(input[name=source][value=file])")
    page.set_input_files("#file", {"name": "letter.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7"})
    page.wait_for_selector("#columns [role=alert]")
    assert ".txt (one text per line), .csv, .tsv, .jsonl or .parquet" in page.inner_text("#columns")
    assert page.locator("#columns input").count() == 0, "no names of columns are asked for"
    page.set_input_files("#file", {"name": "mail.csv", "mimeType": "text/csv", "buffer": CSV})
    page.wait_for_selector("fieldset.column")


def test_a_job_is_canceled(page: Page) -> None:
    page.click("label:has(input[name=source][value=file])")
    page.set_input_files(
        "#file", {"name": "long.txt", "mimeType": "text/plain", "buffer": b"the old doctor\n" * 400_000}
    )
    page.wait_for_selector("text=Each line is one text")
    page.click("#go")
    page.click(".jobs button:has-text('Cancel')")
    page.wait_for_selector(".jobs li:has-text('canceled')")
    page.click(".jobs button:has-text('Delete')")
    page.wait_for_selector(".jobs li", state="detached")


def test_the_sentence_of_a_failed_job_is_shown(page: Page) -> None:
    page.click("label:has(input[name=source][value=file])")
    page.set_input_files("#file", {"name": "broken.jsonl", "mimeType": "", "buffer": b'{"text": "a"}\n{"text": \n'})
    page.wait_for_selector("fieldset.column")
    page.click("#go")
    page.wait_for_selector(".jobs .problem")
    assert "2" in page.inner_text(".jobs .problem")  # the line that is broken
    page.click(".jobs button:has-text('Delete')")


def test_a_dropped_file_opens_the_file_view(page: Page) -> None:
    page.evaluate(
        """() => {
          const carried = new DataTransfer();
          carried.items.add(new File(["text\\nhello\\n"], "dropped.csv"));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
        }"""
    )
    page.wait_for_selector("fieldset.column")
    assert page.inner_text("#file-name") == "dropped.csv"


def test_reports_are_shown_in_a_frame_that_may_do_nothing(page: Page) -> None:
    page.click("nav >> text=Reports")
    page.click(".report")
    frame = page.frame_locator("#report iframe")
    frame.locator("text=no pair breaks the claim").wait_for()
    assert page.get_attribute("#report iframe", "sandbox") == ""
    assert page.evaluate("document.activeElement.tagName") != "BODY"
    assert page.title() == "Reports · Tacit"


def test_c6_playing_with_the_example_costs_nothing(open_page: Opener, reports: Path, tmp_path: Path) -> None:
    from tacit.serve.settings import ServiceSettings

    fresh = Service(ServiceSettings(state=tmp_path, reports=reports)).start()
    try:
        page = open_page(address=fresh.address)
        page.wait_for_selector(".result .words")
        page.click("#go")
        page.wait_for_selector(".draws li:nth-child(2)")
        assert "costs nothing" in page.inner_text("#cost")
        page.click("nav >> text=Ledger")
        page.wait_for_selector("#ledger .empty:has-text('Nothing has been released yet')")
        assert "has spent nothing" in page.inner_text("#ledger")
    finally:
        fresh.stop()


def test_c6_the_ledger_adds_no_units_up_and_shows_equal_releases_once(page: Page) -> None:
    address = page.url.partition("#")[0] + "v1/rewrite"
    for request_body in (
        {"text": "the old doctor", "mechanism": "santext", "epsilon": 4},
        {"text": "the old doctor", "mechanism": "santext", "epsilon": 4},
        {"text": "the old doctor", "mechanism": "codebook", "epsilon": 4},
    ):
        assert page.request.post(address, data=request_body).ok
    page.click("nav >> text=Ledger")
    page.wait_for_selector("#ledger tbody tr")
    shown = page.inner_text("#ledger .spent")
    (words,) = re.findall(r"Word by word.*: epsilon ([\d.,e+]+)", shown)
    (texts,) = re.findall(r"Whole texts at once: epsilon ([\d.,]+)", shown)
    assert float(texts) == 4
    assert float(words.replace(",", "")) > 100
    assert len(re.findall("epsilon", shown)) == 2  # and no sum of both
    assert "not added up" in shown
    cells = page.locator("#ledger tbody tr").all_inner_texts()
    assert len(cells) == len(set(cells))
    assert any(re.search(r"\t2\t.*SanText", row) for row in cells)


def test_the_ledger_tells_what_is_not_in_the_sum(page: Page) -> None:
    address = page.url.partition("#")[0] + "v1/rewrite"
    assert page.request.post(address, data={"text": "the old doctor", "mechanism": "santext+", "epsilon": 4}).ok
    page.click("nav >> text=Ledger")
    page.wait_for_selector("#ledger tbody tr")
    assert "Without an epsilon, because none is proven for a whole text: " in page.inner_text("#ledger")
    row = page.locator("#ledger tbody tr:has-text('SanText+')").first.inner_text()
    assert row.count("not proven") == 2  # neither epsilon nor delta is a number


# Errors -------------------------------------------------------------------------------------------------------------


def test_sentences_of_the_service_are_shown_as_they_are(page: Page) -> None:
    page.click("text=Your text")
    page.fill("#own", "hello")
    page.fill("#epsilon", "1e308")
    with page.expect_response("**/v1/rewrite") as answer:
        page.click("#go")
    assert answer.value.status == 422
    page.wait_for_selector("#go-problem .problem")
    assert page.inner_text("#go-problem .problem") == answer.value.json()["error"]["message"]
    page.fill("#own", " ")
    page.click("#go")
    assert "first" in page.inner_text("#go-problem")


def test_too_many_requests_and_a_lost_connection_can_be_tried_again(page: Page) -> None:
    sentence = "Too many requests with this key: wait 3 seconds."
    page.route(
        "**/v1/rewrite", lambda route: route.fulfill(status=429, json={"error": {"code": "rate", "message": sentence}})
    )
    page.click("text=Your text")
    page.fill("#own", "hello")
    page.click("#go")
    page.wait_for_selector(f"#go-problem >> text={sentence}")
    page.unroute("**/v1/rewrite")
    page.context.set_offline(True)
    page.click("#go-problem button")
    page.wait_for_selector("#go-problem >> text=does not answer")
    page.context.set_offline(False)
    page.click("#go-problem button")
    page.wait_for_selector(".result .words")
    assert page.inner_text("#go-problem") == ""


def test_a_service_that_is_away_at_the_start_is_found_later(open_page: Opener) -> None:
    page = open_page(init=lambda page: page.route("**/v1/**", lambda route: route.abort()))
    page.wait_for_selector("#go-problem >> text=does not answer")
    page.unroute("**/v1/**")
    page.click("#go-problem button")
    page.wait_for_selector(".result .words")


# Keys ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def locked(service: Service, reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """A service with one key, which has a budget."""
    from tacit.serve.budget import add_key
    from tacit.serve.keys import KeyBudget, KeyOptions
    from tacit.serve.settings import ServiceSettings

    settings = ServiceSettings(state=tmp_path_factory.mktemp("locked"), reports=reports)
    key, _ = add_key(settings, "tester", 10_000, KeyBudget(500.0, 0.0), KeyOptions())
    running = Service(settings).start()
    yield running, key
    running.stop()


def test_a_key_is_asked_for_and_kept_for_the_session_only(open_page: Opener, locked: tuple[Service, str]) -> None:
    service, key = locked
    page = open_page(address=service.address)
    page.wait_for_selector("#key-dialog[open]")
    page.fill("#key", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-dialog[open]")
    page.wait_for_function("document.getElementById('key').value === ''")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    page.wait_for_selector("#mechanism optgroup", state="attached")
    assert page.evaluate("Object.values(sessionStorage)") == [key]
    assert page.evaluate("localStorage.length") == 0
    # A budget that can run out is never spent by looking: the example is public.
    page.wait_for_selector("#result-note:has-text('Left of your budget: epsilon 500.')")
    page.click("text=Your text")
    page.fill("#own", "the old doctor of the small village has a new house")
    page.fill("#epsilon", "0.01")
    with page.expect_response("**/v1/rewrite"):
        page.click("#go")
    page.wait_for_selector("#result-note:has-text('Left of your budget: epsilon 49')")
    page.fill("#epsilon", "5")
    page.click("#go")
    page.wait_for_selector("#go-problem .problem")  # refused: more than is left
    page.goto(service.address + "#/reports")
    page.click(".report")
    page.frame_locator("#report iframe").locator("text=no pair breaks the claim").wait_for()
    page.click("#forget-key")
    page.wait_for_selector("#key-dialog[open]")
    assert page.evaluate("sessionStorage.length") == 0


# Looks --------------------------------------------------------------------------------------------------------------


def test_dark_mode_follows_the_system_and_the_switch(open_page: Opener) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = open_page(color_scheme="light"), open_page(color_scheme="dark")
    day, night = light.evaluate(paper), dark.evaluate(paper)
    assert day != night
    light.click("#theme")
    assert light.evaluate(paper) == night
    light.reload()
    assert light.evaluate(paper) == night
    dark.click("#theme")
    assert dark.evaluate(paper) == day


def test_c8_the_switch_of_the_theme_says_what_it_does(open_page: Opener) -> None:
    page = open_page(color_scheme="light")
    switch = page.get_by_role("button", name="Switch to dark", exact=True)
    assert switch.get_attribute("title") == "Switch to dark colors"
    switch.click()
    page.get_by_role("button", name="Switch to light", exact=True).wait_for()
    assert page.get_attribute("#theme", "title") == "Switch to light colors"
    night = open_page(color_scheme="dark")
    assert night.inner_text("#theme") == "Switch to light"


def test_nothing_moves_for_those_who_asked_for_it(open_page: Opener) -> None:
    page = open_page(reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.getElementById('result')).transitionDuration") in ("0s", "1e-05s")


def test_a_narrow_phone_needs_no_sideways_scrolling(open_page: Opener) -> None:
    page = open_page(init=only_mechanisms(*FEW), **PHONE)
    page.wait_for_selector(".result .words")
    page.check("#originals")
    page.click("#go")
    page.wait_for_selector(".draws li:nth-child(2)")
    compare(page)
    for closed in page.locator("summary:visible").all():
        closed.click()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.click("text=Your text")
    page.fill("#own", "donaudampfschifffahrtsgesellschaft" * 5)
    page.click("#go")
    page.wait_for_selector("#draws li")
    assert page.evaluate(wide) == 0
    page.click("label:has(input[name=source][value=file])")
    page.set_input_files(
        "#file",
        {
            "name": "a" * 90 + ".csv",
            "mimeType": "text/csv",
            "buffer": b"a_long_name_of_a_column_that_goes_on_and_on,b\n",
        },
    )
    page.wait_for_selector("fieldset.column")
    assert page.evaluate(wide) == 0
    for view in ("reports", "ledger"):
        page.goto(page.url.partition("#")[0] + f"#/{view}")
        page.wait_for_selector(f"#view-{view} :is(.report, tbody tr)")
        assert page.evaluate(wide) == 0


def test_the_whole_page_is_reached_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert page.evaluate(
            """() => {
              const now = document.activeElement;
              const shown = now.name === "source" ? now.nextElementSibling : now;
              return getComputedStyle(shown).outlineStyle !== "none" && getComputedStyle(shown).outlineWidth !== "0px";
            }"""
        ), f"no visible focus on {reached[-1]}"
        if reached[-1] == "compare-epsilon":
            break
    order = [
        "mechanism",
        "epsilon",
        "epsilon-slider",
        "go",
        "draws-count",
        "originals",
        "changed",
        "changed",
        "compare-epsilon",
    ]
    assert [step for step in reached if step in order] == order


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_about(open_page: Opener, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install axe-playwright-python"
    ).Axe()
    page = open_page(init=only_mechanisms(*FEW), color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_selector("svg.curve")
    page.wait_for_selector(".result .words")
    compare(page)
    page.check("#originals")
    for closed in page.locator("summary:visible").all():
        closed.click()
    views = {
        "example": None,
        "own": "text=Your text",
        "file": "label:has(input[name=source][value=file])",
        "reports": "nav >> text=Reports",
        "ledger": "nav >> text=Ledger",
    }
    for view, way in views.items():
        if way:
            page.click(way)
        if view == "own":
            page.click("#go")
            page.wait_for_selector("#go-problem .problem")
        if view == "file":
            page.set_input_files("#file", {"name": "mail.csv", "mimeType": "text/csv", "buffer": CSV})
            page.wait_for_selector("fieldset.column")
        if view == "reports":
            page.wait_for_selector(".report")
        if view == "ledger":
            page.wait_for_selector("#ledger tbody tr")
        outcome = axe.run(page)
        assert outcome.violations_count == 0, f"{view}: {outcome.generate_report()}"


def test_c4_untouched_settings_of_paraphrase_are_not_sent_and_a_prompt_keeps_its_lines(open_page: Opener) -> None:
    page = open_page(init=only_mechanisms("santext", "paraphrase"))
    page.wait_for_selector(".result .words")
    page.route("**/v1/rewrite", lambda route: route.abort())
    page.select_option("#mechanism", "paraphrase")
    page.evaluate("document.getElementById('options-box').open = true")
    assert page.input_value("#option-prompt").count("\n") > 5
    with page.expect_request("**/v1/rewrite") as sent:
        page.click("#go")
    request_body = sent.value.post_data_json
    assert (request_body["mechanism"], request_body["options"], request_body["epsilon"]) == ("paraphrase", {}, 360)
    page.fill("#option-prompt", "Say it again.\n\nText: {text}\nAgain:")
    with page.expect_request("**/v1/rewrite") as sent:
        page.click("#go")
    assert sent.value.post_data_json["options"] == {"prompt": "Say it again.\n\nText: {text}\nAgain:"}


def test_c4_a_result_of_other_settings_is_not_shown_when_a_draw_fails(open_page: Opener) -> None:
    """Paraphrase may take too long: what SanText drew must not stand there as if it came from it."""
    page = open_page(init=only_mechanisms("santext", "paraphrase"))
    page.wait_for_selector(".result .words")
    page.route("**/v1/rewrite", lambda route: route.abort())
    page.select_option("#mechanism", "paraphrase")
    page.wait_for_selector("#go-problem:not([hidden])")
    assert "Nothing was drawn" in page.inner_text("#result")
    assert page.locator(".result .words").count() == 0
