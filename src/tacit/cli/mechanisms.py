"""`tacit mechanisms`: what there is, with its notion, its unit, the model it needs and its paper."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar

import click
from pydantic import Field
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tacit.catalog import DEFAULT_MECHANISM, described, find, mechanism_classes, mechanism_names, summary
from tacit.cli.generated import command_for
from tacit.cli.options import Printing
from tacit.cli.terminal import output_console
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import Name
from tacit.mechanism import Mechanism


class Listed(Printing):
    """Which mechanism is explained, or all of them."""

    job: ClassVar[str] = "mechanisms"

    name: Annotated[Name[str | None], Field(description="The mechanism to explain."), Varied(metavar="[NAME]")] = None
    paper: Annotated[
        str | None,
        Field(description="Find what there is of a paper instead: a citation such as 'Yue et al. 2021', a method, an "
              "author."),
        Option(Group.DATA),
    ] = None  # fmt: skip


def mechanisms(options: Listed) -> None:
    if options.paper is not None:
        from tacit.cli.papers import show_papers

        show_papers(options.paper, as_json=options.as_json)
        return
    if options.name is not None:
        only_vectors = options.name in mechanism_names(vectors=True) and options.name not in mechanism_names()
        chosen = find(options.name, vectors=only_vectors)
        if options.as_json:
            click.echo(json.dumps(described(chosen), indent=2, ensure_ascii=False))
        else:
            show_one(chosen)
        return
    texts, vectors = mechanism_classes(), mechanism_classes(vectors=True)
    if options.as_json:
        click.echo(json.dumps([described(each) for each in (*texts, *vectors)], indent=2, ensure_ascii=False))
        return
    show_all(texts)
    output_console().print("\nVectors in place of texts (tacit embed):\n")
    show_all(vectors)
    output_console().print("\n'tacit mechanisms NAME' explains one.")


def show_all(everything: list[type[Mechanism]]) -> None:
    """Facts of each mechanism in columns, and below them what it does."""
    headings = ("name", "level", "notion", "unit", "model needed", "paper")
    rows = [
        headings,
        *((each.name, each.level, each.notion, each.unit, each.model_needed, each.paper) for each in everything),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings))]
    console = output_console()
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        console.print(Text(line, style="bold" if number == 0 else ""), soft_wrap=True)
        if number:
            default = " (the default)" if row[0] == DEFAULT_MECHANISM else ""
            console.print(Padding(Text(summary(everything[number - 1]) + default, style="dim"), (0, 0, 0, 4)))


def show_one(mechanism: type[Mechanism]) -> None:
    console = output_console()
    facts = described(mechanism)
    console.print(Text(f"{facts['title']} ({facts['name']})", style="bold"))
    console.print(
        f"{facts['level']} level, {facts['notion']} differential privacy per {facts['unit']}; {facts['paper']}\n"
        f"model needed: {facts['needs']}\n",
        markup=False,
    )
    console.print(facts["description"], markup=False, soft_wrap=True)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "default", "meaning"):
        table.add_column(heading)
    for item in facts["parameters"]:
        table.add_row(item["name"], "(required)" if item["required"] else str(item["default"]), item["meaning"])
    console.print(table)
    command = "rewrite" if mechanism.releases == "text" else "embed"
    example = f"\ntacit {command} INPUT --mechanism {facts['name']} --epsilon 2 --option NAME=VALUE -o OUTPUT"
    console.print(example, style="dim", soft_wrap=True)


command = command_for(
    "mechanisms",
    [Listed],
    mechanisms,
    help="List the mechanisms, or explain one: its parameters, what it promises, and where it comes from.\n\n"
    "With --paper, say what became of a published method: the command that runs it, what does more in its place, or "
    "the number that refutes it.",
)
