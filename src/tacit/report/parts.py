"""The parts of a report. A check returns a `Section`; a command puts sections into a `Report` and shows it.

Whatever is measured is kept as numbers (`Finding.numbers`, `Table.rows`), so that JSON, terminal and page say the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import SupportsFloat

from tacit.atomic import write_file
from tacit.errors import BadInputError
from tacit.notebook import framed
from tacit.places import refuse_existing
from tacit.rounding import rounded_down, rounded_up
from tacit.version import __version__

REPORT_VERSION = 1
REFUTED_EXIT_CODE = 3


class Light(StrEnum):
    """The traffic light of a finding, for somebody who has to decide."""

    GREEN = "green"
    AMBER = "amber"
    RED = "red"
    NONE = "none"  # a number to know, without a verdict

    @property
    def word(self) -> str:
        return {"green": "good", "amber": "look", "red": "bad", "none": "note"}[self.value]


@dataclass(frozen=True)
class Finding:
    """One result in one sentence, with the threshold that gave it its light.

    name       what was looked at, in a few words
    sentence   what was found
    why        which threshold the light comes from, and why that one
    refuted    a privacy claim was shown to be false
    numbers    the same for machines
    """

    name: str
    light: Light
    sentence: str
    why: str = ""
    refuted: bool = False
    numbers: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.refuted and self.light is not Light.RED:
            raise ValueError("a refuted claim is red")


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers. `private` marks rows that quote the original text; `groups` are headings above the
    columns, each with the number of columns below it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""
    private: bool = False
    groups: Sequence[tuple[str, int]] = ()

    def __post_init__(self) -> None:
        if self.groups and sum(count for _, count in self.groups) != len(self.columns):
            raise ValueError(f"the headings of '{self.title}' do not cover its columns")
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of '{self.title}' has {len(row)} cells for {len(self.columns)} columns")

    @property
    def headings(self) -> list[str]:
        """One line of headings, where there is no room for two."""
        above = [group for group, count in self.groups for _ in range(count)] or [""] * len(self.columns)
        return [f"{group}: {name}" if group else name for group, name in zip(above, self.columns, strict=True)]


@dataclass(frozen=True)
class Figure:
    """A drawing as SVG; `description` says in words what it shows."""

    title: str
    svg: str
    description: str


@dataclass(frozen=True)
class Section:
    """A part of a report. `meaning` says what a light stands for in this section, where it is not what the report says:
    its findings then stand apart in the summary as well."""

    title: str
    text: str = ""
    findings: Sequence[Finding] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    meaning: Mapping[Light, str] = field(default_factory=dict)


@dataclass
class Report:
    """The findings of a command. `facts` are the circumstances: files, mechanism, sizes, seed. `meaning` says what a
    light stands for, where it is not what `page` says of every report."""

    title: str
    sections: list[Section] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    version: str = __version__
    meaning: Mapping[Light, str] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return [finding for section in self.sections for finding in section.findings]

    @property
    def light(self) -> Light:
        """The worst light of all findings."""
        lights = {finding.light for finding in self.findings}
        for light in (Light.RED, Light.AMBER, Light.GREEN):
            if light in lights:
                return light
        return Light.NONE

    @property
    def refuted(self) -> bool:
        return any(finding.refuted for finding in self.findings)

    def failing(self, lights: Collection[Light] = ()) -> list[Finding]:
        """The findings that a pipeline should stop at: refuted claims, and those with one of these lights."""
        return [finding for finding in self.findings if finding.refuted or finding.light in lights]

    @property
    def exit_code(self) -> int:
        """0, or 3 when a privacy claim was refuted, so that a pipeline can stop there."""
        return REFUTED_EXIT_CODE if self.refuted else 0

    @property
    def private(self) -> bool:
        """Whether a part quotes the original text."""
        return any(table.private for section in self.sections for table in section.tables)

    # For machines ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        return {
            "report_version": REPORT_VERSION,
            "tacit_version": self.version,
            "title": self.title,
            "light": self.light.value,
            "refuted": self.refuted,
            "private": self.private,
            "facts": plain(self.facts),
            "sections": [
                {
                    "title": section.title,
                    "text": section.text,
                    "findings": [
                        {
                            "name": f.name,
                            "light": f.light.value,
                            "refuted": f.refuted,
                            "sentence": f.sentence,
                            "why": f.why,
                            "numbers": plain(f.numbers),
                        }
                        for f in section.findings
                    ],
                    "tables": [
                        {
                            "title": t.title,
                            "columns": t.headings,
                            "rows": plain(t.rows),
                            "note": t.note,
                            "private": t.private,
                        }
                        for t in section.tables
                    ],
                    "figures": [{"title": f.title, "description": f.description} for f in section.figures],
                }
                for section in self.sections
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    # For people -----------------------------------------------------------------------------------------------

    def to_html(self) -> str:
        from tacit.report.page import page

        return page(self)

    def __repr__(self) -> str:
        refuted = ", a claim is refuted" if self.refuted else ""
        return f"<Report '{self.title}': {len(self.findings):,} findings, the worst is '{self.light.word}'{refuted}>"

    def __str__(self) -> str:
        """The report in plain text, without what quotes the original text: what is printed is often kept."""
        from tacit.report.plain import plain_text

        return plain_text(self.without_quotes())

    def _repr_html_(self) -> str:
        """The page without what quotes the original text: a notebook keeps what it shows."""
        return framed(self.without_quotes().to_html(), self.title)

    def without_quotes(self) -> Report:
        """The same report without its tables that quote the original text."""
        if not self.private:
            return self
        sections = [replace(part, tables=[t for t in part.tables if not t.private]) for part in self.sections]
        left_out = "Tables that quote the original text are left out here; to_html() and save() have them."
        return replace(self, sections=[*sections, Section("Left out", left_out)])

    def save(self, path: str | Path, *, force: bool = False, private: bool = False) -> None:
        """Write the report, as a page or as JSON by its ending; an existing file needs `force`.

        A report that quotes the original text, or that the caller calls private, can be read by its owner only.
        """
        target = Path(path)
        text = self.to_json() if target.suffix == ".json" else self.to_html()
        refuse_existing(target, force=force)
        try:
            put(target, text, private=private or self.private)
        except OSError as error:
            raise BadInputError(
                "cannot-write", "cannot write the report {path}: {reason}", path=target, reason=error.strerror
            ) from error


def put(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file, whole or not at all; what is private can be read by its owner only, from its first byte on."""
    write_file(path, text.encode(), private=private)


class AtMost(float):
    """An upper bound in a cell: rounded up for people."""


class AtLeast(float):
    """A lower bound in a cell: rounded down for people."""


def cell_text(value: object) -> str:
    """A cell for people: floats with three digits that matter, bounds rounded to the safe side."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) or (hasattr(value, "dtype") and isinstance(value, SupportsFloat)):
        number = float(value)
        if math.isnan(number):
            return "–"
        if math.isinf(number):
            return "∞" if number > 0 else "−∞"
        if isinstance(value, AtMost | AtLeast):
            return rounded_up(number, 3) if isinstance(value, AtMost) else rounded_down(number, 3)
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
    return str(value)


def plain(value: object) -> object:
    """Only what JSON can hold: arrays as lists, infinity and NaN as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Sequence | Iterator | set | frozenset):
        return [plain(item) for item in value]
    return str(value)
