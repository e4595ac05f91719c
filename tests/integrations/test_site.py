"""The documentation as a site: links lead somewhere, every page is in the menu, nothing is loaded from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file(), page.name


def test_nothing_is_loaded_from_elsewhere(site):
    """Links may lead away; scripts, styles, fonts and pictures may not."""
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(https?:)?//", text)
        loaded += re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect|icon)[^>]*href=\"?(https?:)?//", text)
        assert not loaded, page.name


def test_lists_and_tables_were_understood(site):
    """Markdown that only some readers understand shows up as text that begins with a dash or a bar."""
    for page in site.glob("*.html"):
        text = re.sub(r"<pre>.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        broken = re.findall(r"<p>[^<]*\n(?:- |\* |\|---)", text)
        assert not broken, f"{page.name}: {broken[0]!r}"
