"""`tacit mechanisms --paper`: what Tacit has of a paper, by its citation, a method, an author or words of its title."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.padding import Padding
from rich.text import Text

from tacit.catalog import mechanism_classes
from tacit.cli.terminal import output_console
from tacit.errors import BadParameterError, did_you_mean
from tacit.literature.papers import Paper, find_papers, mentioned, papers
from tacit.mechanism import Mechanism


def show_papers(question: str, *, as_json: bool) -> None:
    """The mechanisms and the rows of the table that a question means."""
    rows = find_papers(question)
    mechanisms = mechanisms_of(question, rows)
    if not rows and not mechanisms:
        cited = [paper.cite for paper in papers()]
        raise BadParameterError(
            "no-such-paper",
            "no mechanism and no paper of the survey is called '{paper}'{hint} docs/literature.md lists all",
            paper=question,
            hint=did_you_mean(question, cited),
        )
    if as_json:
        described = [{**asdict(paper), "year": paper.year, "measured": paper.measured()} for paper in rows]
        names = [mechanism.name for mechanism in mechanisms]
        click.echo(json.dumps({"papers": described, "mechanisms": names}, indent=2, ensure_ascii=False))
        return
    console = output_console()
    for paper in rows:
        console.print(Text(f"{paper.cite}: {paper.method} ({paper.status})", style="bold"), soft_wrap=True)
        for line in _lines(paper):
            console.print(Padding(Text(line), (0, 0, 0, 2)))
        for command in paper.commands:
            console.print(Padding(Text(command, style="dim"), (0, 0, 0, 4)), soft_wrap=True)
        console.print()
    for mechanism in mechanisms:
        console.print(Text(f"{mechanism.name}: {mechanism.title}, {mechanism.paper}"), soft_wrap=True)
    if mechanisms:
        console.print("\n'tacit mechanisms NAME' explains one.")


def mechanisms_of(question: str, rows: tuple[Paper, ...]) -> list[type[Mechanism]]:
    """The mechanisms that are those papers' or name them."""
    places = {place for paper in rows for place in paper.classes}
    return [
        mechanism
        for mechanism in mechanism_classes()
        if mentioned(question, mechanism.paper) or f"{mechanism.__module__}:{mechanism.__name__}" in places
    ]


def _lines(paper: Paper) -> list[str]:
    return [
        f"{paper.authors}. {paper.title}. {paper.year}.",
        f"claims: {paper.claims} (unit: {paper.unit}; neighbors: {paper.neighbors})",
        f"in Tacit: {paper.tacit}",
        *(f"measured: {sentence}" for sentence in paper.measured()),
        *([f"superseded by: {paper.superseded_by}"] if paper.superseded_by else []),
    ]
