"""The table of papers, typed, and the search in it."""

from __future__ import annotations

import importlib
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, cast, get_args

from pydantic import TypeAdapter

TABLE: Final = Path(__file__).with_name("survey.toml")

Status = Literal["works", "superseded", "refuted", "dead end"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)

STATUS_MEANINGS: Final[dict[Status, str]] = {
    "works": "the published method is in Tacit and keeps its promise; the row says what of it is not tried or left out",
    "superseded": "its promise may hold, but something in Tacit does provably more",
    "refuted": "as published it does not keep its promise; Tacit has it repaired, or something else",
    "dead end": "there is nothing to repair that would be of use",
}


@dataclass(frozen=True)
class Paper:
    """A row of the table; `survey.toml` explains the fields."""

    key: str
    cite: str
    method: str
    authors: str
    title: str
    part: str
    claims: str
    unit: str
    neighbors: str
    status: Status
    tacit: str
    evidence: tuple[str, ...]
    also: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    refutations: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    superseded_by: str = ""

    @property
    def year(self) -> int:
        return int(re.findall(r"\d{4}", self.cite)[-1])

    def measured(self) -> tuple[str, ...]:
        """The sentences of its refutations and costs, whose numbers are computed now."""
        return tuple(str(named(place)()) for place in (*self.refutations, *self.costs))


@dataclass(frozen=True)
class OpenQuestion:
    """A question that the survey leaves open, and what Tacit answers."""

    key: str
    name: str
    says: str
    tacit: str
    commands: tuple[str, ...] = ()


@cache
def _table() -> dict[str, object]:
    with TABLE.open("rb") as file:
        return tomllib.load(file)


@cache
def papers() -> tuple[Paper, ...]:
    """All papers, in the order of the survey.

    >>> len(papers())
    77
    """
    return TypeAdapter(tuple[Paper, ...]).validate_python(_table()["paper"])


@cache
def directions() -> tuple[OpenQuestion, ...]:
    """The open questions of the survey."""
    return TypeAdapter(tuple[OpenQuestion, ...]).validate_python(_table()["direction"])


def parts() -> tuple[str, ...]:
    """The parts of the survey, in its order."""
    return tuple(dict.fromkeys(paper.part for paper in papers()))


def named(place: str) -> Callable[..., object]:
    """The class or function at a place `module:name`."""
    module, _, name = place.partition(":")
    return cast("Callable[..., object]", getattr(importlib.import_module(module), name))


def find_papers(question: str) -> tuple[Paper, ...]:
    """The papers that a citation or the name of a method means, or else those that have all words of the question in
    authors, title, method or citation; none for a question without words.

    >>> [paper.method for paper in find_papers("Yue et al. (2021)")]
    ['SanText, SanText+']
    >>> [paper.key for paper in find_papers("carvalho 2021")]
    ['carvalho-2021b', 'carvalho-2021a']
    """
    words = _words(question)
    if not words:
        return ()
    meant = tuple(paper for paper in papers() if any(_words(name) == words for name in _names(paper)))
    return meant or tuple(paper for paper in papers() if _begins(words, _words(_everything(paper))))


def mentioned(question: str, text: str) -> bool:
    """Whether all words of a question stand in a text, as a citation in a list of citations; not for no words.

    >>> mentioned("Yue et al. 2021", "Feyisetan et al. 2020; Yue et al. 2021")
    True
    """
    words = _words(question)
    return bool(words) and any(_begins(words, _words(part)) for part in text.split(";"))


def _names(paper: Paper) -> tuple[str, ...]:
    return (paper.cite, paper.key, *paper.also, paper.method, *paper.method.split(","))


def _everything(paper: Paper) -> str:
    return " ".join((paper.key, paper.cite, *paper.also, paper.method, paper.authors, paper.title))


def _begins(words: Iterable[str], there: list[str]) -> bool:
    """Every word is the beginning of one that is there: 2021 finds 2021a."""
    return all(any(other.startswith(word) for other in there) for word in words)


def _words(text: str) -> list[str]:
    """Words for comparison: without accents and capitals, `&` as `and`, without `et al.`."""
    plain = unicodedata.normalize("NFKD", text.replace("ø", "o").replace("&", " and "))
    letters = "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()
    return [word for word in re.findall(r"[\w+]+", letters) if word not in ("et", "al")]
