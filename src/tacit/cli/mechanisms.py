"""`tacit mechanisms`: what there is, with its notion, its unit and its paper."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import MISSING, Field, fields
from typing import Any

import typer

from tacit.catalog import DEFAULT_MECHANISM, find, mechanism_names
from tacit.mechanism import Mechanism

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def mechanisms(
    name: str | None = typer.Argument(None, metavar="[NAME]", help="The mechanism to explain."),
    as_json: bool = typer.Option(False, "--json", help="Write JSON, for programs."),
) -> None:
    """List the mechanisms, or explain one: its parameters, what it promises, and where it comes from."""
    if name is not None:
        chosen = find(name)
        if as_json:
            typer.echo(json.dumps(described(chosen), indent=2, ensure_ascii=False))
        else:
            show_one(chosen)
        return
    everything = [find(each) for each in mechanism_names()]
    if as_json:
        typer.echo(json.dumps([described(each) for each in everything], indent=2, ensure_ascii=False))
    else:
        show_all(everything)


def described(mechanism: type[Mechanism]) -> dict[str, Any]:
    """All facts about a mechanism, as plain values."""
    meanings = parameter_meanings(mechanism)
    return {
        "name": mechanism.name,
        "title": mechanism.title,
        "level": mechanism.level,
        "notion": mechanism.notion,
        "unit": mechanism.unit,
        "paper": mechanism.paper,
        "summary": summary(mechanism),
        "description": description(mechanism),
        "parameters": [
            {
                "name": item.name,
                "type": _type_name(item),
                "default": default,
                "required": required,
                "meaning": meanings.get(item.name, ""),
            }
            for item in fields(mechanism)
            if item.init and item.name != "seed"
            for default, required in [_default(item)]
        ],
    }


def summary(mechanism: type[Mechanism]) -> str:
    """What it does in a sentence: the first paragraph of the docstring."""
    return " ".join((inspect.getdoc(mechanism) or mechanism.title).split("\n\n")[0].split())


def description(mechanism: type[Mechanism]) -> str:
    """The module's docstring, which holds formula, guarantee and proof, then the one of the class."""
    module = inspect.getmodule(mechanism)
    parts = [inspect.getdoc(module) if module else "", _without_parameters(inspect.getdoc(mechanism) or "")]
    return "\n\n".join(part.strip() for part in parts if part)


_PARAMETER = re.compile(r"^(\w+)  +(\S.*)$")


def parameter_meanings(mechanism: type[Mechanism]) -> dict[str, str]:
    """What each parameter is for: the lines `name   meaning` of the docstrings, the most special class first."""
    known = {item.name for item in fields(mechanism)}
    meanings: dict[str, str] = {}
    for cls in mechanism.__mro__:
        current = None
        for line in inspect.cleandoc(cls.__dict__.get("__doc__") or "").splitlines():
            found = _PARAMETER.match(line)
            if found and found[1] in known:
                current = found[1] if found[1] not in meanings else None
                if current:
                    meanings[current] = found[2]
            elif current and line.startswith("  "):
                meanings[current] += " " + line.strip()
            else:
                current = None
    return meanings


def _without_parameters(text: str) -> str:
    """The docstring up to its list of parameters, which is shown as a table."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if _PARAMETER.match(line)), len(lines))
    return "\n".join(lines[:first])


def show_all(everything: list[type[Mechanism]]) -> None:
    """Facts of each mechanism in columns, and below them what it does."""
    from rich.padding import Padding
    from rich.text import Text

    from tacit.cli.terminal import output_console

    headings = ("name", "level", "notion", "unit", "paper")
    rows = [headings, *((one.name, one.level, one.notion, one.unit, one.paper) for one in everything)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings))]
    console = output_console()
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        console.print(Text(line, style="bold" if number == 0 else ""), soft_wrap=True)
        if number:
            default = " (the default)" if row[0] == DEFAULT_MECHANISM else ""
            console.print(Padding(Text(summary(everything[number - 1]) + default, style="dim"), (0, 0, 0, 4)))
    console.print("\n'tacit mechanisms NAME' explains one.")


def show_one(mechanism: type[Mechanism]) -> None:
    from rich.table import Table
    from rich.text import Text

    from tacit.cli.terminal import output_console

    console = output_console()
    facts = described(mechanism)
    console.print(Text(f"{facts['title']} ({facts['name']})", style="bold"))
    console.print(
        f"{facts['level']} level, {facts['notion']} differential privacy per {facts['unit']}; {facts['paper']}\n",
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
    example = f"\ntacit rewrite INPUT --mechanism {facts['name']} --epsilon 2 --option NAME=VALUE -o OUTPUT"
    console.print(example, style="dim", soft_wrap=True)


def _default(item: Field[Any]) -> tuple[Any, bool]:
    if item.default is not MISSING:
        return item.default, False
    if item.default_factory is not MISSING:
        return item.default_factory(), False
    return None, True


def _type_name(item: Field[Any]) -> str:
    return item.type if isinstance(item.type, str) else getattr(item.type, "__name__", str(item.type))
