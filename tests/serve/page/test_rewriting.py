"""The desk: text in, words out, highlight, slider, draws and what they cost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tacit
from tests.serve.page.conftest import FOLDER, Opener, epsilons_in

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEXT = "the old doctor lives in london ."


def rewrites(page: Page) -> list[dict[str, object]]:
    """Collects the bodies of rewriting requests from now on."""
    results: list[dict[str, object]] = []
    page.on("request", lambda request: request.url.endswith("/v1/rewrite") and results.append(request.post_data_json))
    return results


def draw_own(page: Page, text: str = TEXT) -> dict[str, object]:
    page.click("text=Your text")
    page.fill("#own", text)
    with page.expect_response("**/v1/rewrite") as answer:
        page.click("#go")
    page.wait_for_selector(".result .words")
    return dict(answer.value.json())


def changed(pieces: list[list[str]]) -> list[list[str]]:
    return [piece for piece in pieces if piece[0] != piece[1]]


def test_the_example_is_rewritten_with_its_changed_words_marked(open_page: Opener) -> None:
    answers = []
    page = open_page(
        init=lambda page: page.on(
            "response", lambda response: response.url.endswith("/v1/rewrite") and answers.append(response)
        )
    )
    page.wait_for_selector(".result .words")
    (draw,) = answers[0].json()["draws"]
    marked = page.locator(".result .changed")
    shown = marked.evaluate_all(
        "words => words.map(word => [word.dataset.original, word.querySelector('.after').textContent])"
    )
    assert shown == changed(draw["pieces"][0])
    assert len(shown) > 0
    # Tint and line: the mark must not depend on color alone.
    assert marked.locator(".after").first.evaluate("word => getComputedStyle(word).borderBottomStyle") == "solid"
    assert "words changed" in page.inner_text("#result-note")


def test_the_original_of_a_word_shows_on_hover_and_by_keyboard(page: Page) -> None:
    words = page.locator(".result .changed")
    words.nth(1).hover()
    assert page.inner_text("#tip") == f"was “{words.nth(1).get_attribute('data-original')}”"
    page.mouse.move(0, 0)
    words.nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.original") == words.nth(1).get_attribute("data-original")
    assert page.get_attribute(".changed:focus", "aria-describedby") == "tip"
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")


def test_originals_stand_above_the_words_on_demand(page: Page) -> None:
    above = page.locator(".result .changed .original").first
    assert not above.is_visible()
    page.check("#originals")
    assert above.is_visible()
    # What is copied out of the result is the rewritten text alone.
    copied = page.evaluate(
        """() => {
          getSelection().selectAllChildren(document.querySelector(".result .words"));
          return getSelection().toString();
        }"""
    )
    words = page.locator(".result .changed .after").all_inner_texts()
    assert all(word in copied for word in words)
    assert len(copied.split()) <= int(re.search(r"of (\d+) words", page.inner_text("#result-note"))[1])


def test_the_slider_works_by_keyboard_and_the_example_follows(page: Page) -> None:
    before = float(page.input_value("#epsilon"))
    page.focus("#epsilon-slider")
    with page.expect_response("**/v1/rewrite") as answer:
        page.keyboard.press("ArrowRight")
    after = float(page.input_value("#epsilon"))
    assert after > before
    assert page.get_attribute("#epsilon-slider", "aria-valuetext") == f"epsilon {after:g}"
    assert answer.value.request.post_data_json["epsilon"] == after
    with page.expect_response("**/v1/rewrite") as answer:
        page.fill("#epsilon", "123.5")  # beyond the slider
    assert answer.value.request.post_data_json["epsilon"] == 123.5


def test_a_text_of_ones_own_is_drawn_on_purpose_only(page: Page) -> None:
    sent = rewrites(page)
    page.click("text=Your text")
    page.fill("#own", TEXT)
    page.focus("#epsilon-slider")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(700)  # longer than the preview of the example waits
    assert sent == []
    assert "Spends epsilon" in page.inner_text("#cost")
    draw_own(page)
    assert [body["text"] for body in sent] == [TEXT]
    assert "dataset" not in sent[0]
    assert "spends again" in page.inner_text("#cost")


def test_draws_stand_side_by_side_and_their_budget_adds_up(page: Page) -> None:
    answer = draw_own(page)
    epsilon = float(page.input_value("#epsilon"))
    unit = tacit.SanText(epsilon=epsilon).guarantee()
    assert answer["guarantee"]["guarantee"]["epsilon"] == unit.epsilon

    page.select_option("#draws-count", "3")
    with page.expect_response("**/v1/rewrite"):
        page.click("#go")
    page.wait_for_selector(".draws li:nth-child(4)")
    four = unit.then(unit, unit, unit)
    assert epsilons_in(page.inner_text("#draws .spent")) == [pytest.approx(four.epsilon)]
    assert "4 draws" in page.inner_text("#draws .spent")
    assert "covers the last 3 of 4 draws" in page.inner_text("#promise")

    # Another epsilon of the same distance adds up, too; another kind of promise does not.
    page.select_option("#draws-count", "1")
    page.fill("#epsilon", "1.5")
    with page.expect_response("**/v1/rewrite"):
        page.click("#go")
    page.wait_for_selector(".draws li:nth-child(5)")
    five = four.then(tacit.SanText(epsilon=1.5).guarantee())
    assert epsilons_in(page.inner_text("#draws .spent")) == [pytest.approx(five.epsilon)]
    page.select_option("#mechanism", "santext+")
    with page.expect_response("**/v1/rewrite"):
        page.click("#go")
    page.wait_for_selector(".draws li:nth-child(6)")
    assert len(epsilons_in(page.inner_text("#draws .spent"))) == 2
    assert "no proof adds them up" in page.inner_text("#draws .spent")

    page.fill("#own", "another text about the same person")  # editing does not start a new count
    assert page.locator(".draws li").count() == 6
    page.click("#new-text")
    assert page.locator(".draws li").count() == 0
    assert page.input_value("#own") == ""


def test_the_promise_says_what_an_attacker_can_still_learn(page: Page) -> None:
    answer = draw_own(page)
    # First what an attacker makes of it, in words; the proven bound with its powers of ten can be opened.
    page.wait_for_selector("#promise .attacker")
    promise = page.inner_text("#promise")
    assert "guesses about 20 of 100 words; without seeing it, about 8." in promise
    assert answer["guarantee"]["sentence"] not in promise
    page.click("#promise details.bound summary")
    promise = page.inner_text("#promise")
    assert answer["guarantee"]["sentence"] in promise
    assert page.locator("#promise h3").inner_text() == "What an attacker can still learn"
    still = page.inner_text("#promise .still").lower()
    assert answer["document_guarantee"]["sentence"].lower() in still
    for item in answer["guarantee"]["guarantee"]["not_covered"]:
        assert item.lower() in still


def test_result_and_card_are_downloaded_without_the_original(page: Page, tmp_path: Path) -> None:
    secret = "zyxomma"
    answer = draw_own(page, f"{secret} lives in london")
    names = ["rewritten.txt", "rewritten.json", "card.json", "card.md", "card.html"]
    saved = {}
    for name in names:
        with page.expect_download() as download:
            page.click(f"button:text-is('{name}')")
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        saved[name] = (tmp_path / name).read_text(encoding="utf-8")
    assert saved["rewritten.txt"].strip() == answer["draws"][0]["texts"][0]
    assert tacit.card.Card.from_json(saved["card.json"]).guarantee.unit.value == "token"
    assert json.loads(saved["rewritten.json"])["draws"] == [answer["draws"][0]["texts"][0]]
    assert all(secret not in text for text in saved.values())
    for name in ("card.md", "card.html"):
        assert "What an attacker can still learn" in saved[name]
        assert answer["guarantee"]["sentence"] in saved[name]


def test_the_curve_marks_the_current_epsilon_and_a_click_on_it_chooses_one(open_page: Opener) -> None:
    page = open_page(curve=True)
    page.wait_for_selector("svg.curve .dot")
    assert "expect about" in page.inner_text("#curve")
    described = page.locator("svg.curve desc").text_content()
    assert f"At epsilon {page.input_value('#epsilon')}" in described
    box = page.locator("svg.curve").bounding_box()
    page.mouse.click(box["x"] + 60, box["y"] + box["height"] / 2)
    chosen = float(page.input_value("#epsilon"))
    lowest = float(page.locator("#curve tbody td").first.text_content())
    assert lowest <= chosen < 1.5 * lowest
    assert f"At epsilon {chosen:g}" in page.locator("svg.curve desc").text_content()
    assert page.locator("#curve table tbody tr").count() >= 5


def test_nothing_is_stored_but_the_theme(page: Page) -> None:
    draw_own(page)
    page.click("#theme")
    assert page.evaluate("Object.keys(localStorage)") == ["tacit-theme"]
    assert page.evaluate("Object.keys(sessionStorage)") == []
    assert page.evaluate("document.cookie") == ""


def test_no_file_of_the_page_needs_inline_script_or_style_or_another_origin() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        addresses = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in addresses, path.name
        assert "https://" not in addresses, path.name
        assert "innerHTML" not in text, path.name
    index = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert "<style" not in index
    assert " style=" not in index
    assert " onclick" not in index
    for name in FOLDER.glob("*.js"):
        assert name.name in {"theme.js", "main.js", "reports.js", "ledger.js"} or f"assets/{name.name}" in index


def test_b1_an_example_that_is_refused_does_not_seem_to_be_on_its_way(open_page: Opener) -> None:
    """As for a key that is refused what is nominal; and what was drawn with other settings is not shown for these."""
    refusal = {"error": {"code": "nominal", "message": "nominal releases are refused"}}
    page = open_page()
    page.wait_for_selector(".result .words")
    page.route("**/v1/rewrite", lambda route: route.fulfill(status=403, json=refusal))
    page.click("#another")
    page.wait_for_selector("#go-problem :text('nominal releases are refused')")
    assert "Nothing was drawn" in page.inner_text("#result")
    assert page.is_hidden("#result-downloads")
    page.unroute("**/v1/rewrite")
    page.click("#another")
    page.wait_for_selector(".result .words")
