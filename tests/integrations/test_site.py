"""The documentation as a site: links lead somewhere, every page is in the menu, nothing is loaded from elsewhere, and
the search works on a folder that was opened from disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'tacit-dp[docs]'")
pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'tacit-dp[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site):
    for page in (ROOT / "docs").rglob("*.md"):
        built = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert built.is_file(), page.name


def test_nothing_is_loaded_from_elsewhere(site):
    """Links may lead away; scripts, styles, fonts and pictures may not."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(https?:)?//", text)
        loaded += re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect|icon)[^>]*href=\"?(https?:)?//", text)
        assert not loaded, page.name


def test_lists_and_tables_were_understood(site):
    """Markdown that only some readers understand shows up as text that begins with a dash or a bar."""
    for page in site.rglob("*.html"):
        text = re.sub(r"<pre>.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        broken = re.findall(r"<p>[^<]*\n(?:- |\* |\|---)", text)
        assert not broken, f"{page.name}: {broken[0]!r}"


# In a browser, from disk ------------------------------------------------------------------------------------------

WAIT = 60_000
"""Milliseconds until a step counts as failed; only ever used up by a failure."""


@pytest.fixture
def opened(site: Path, browser: Any) -> Iterator[Any]:
    """A function that opens a page of the site with a file:// address; what it asks for elsewhere fails the test."""
    requested: list[str] = []
    context = browser.new_context()

    def open_page(name: str) -> Any:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("request", lambda request: requested.append(request.url))
        page.goto((site / name).as_uri())
        return page

    yield open_page
    context.close()
    assert requested
    assert [url for url in requested if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


@pytest.mark.parametrize("name", ["index.html", "results/santext.html"])
def test_c8_the_search_finds_pages_from_disk(opened: Any, name: str):
    page = opened(name)
    page.click("input[data-md-component=search-query]")
    page.keyboard.type("codebook")
    link = page.locator(".md-search-result__link", has_text="codebook").first
    link.wait_for()
    link.click()
    page.wait_for_url("**/codebook.html*")
    assert "codebook" in page.locator("h1").first.inner_text().lower()


def test_c8_the_switch_of_the_colors_says_what_it_does(opened: Any):
    page = opened("index.html")
    page.locator("label[title='Switch to dark']:visible").click()
    page.locator("body[data-md-color-scheme=slate]").wait_for()
    page.locator("label[title='Switch to light']:visible").click()
    page.locator("body[data-md-color-scheme=default]").wait_for()
