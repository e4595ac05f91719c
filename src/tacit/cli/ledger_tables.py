"""Tables and sentences of `tacit ledger`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from tacit.account.ledger import Ledger, Limit, Spent, Subject
from tacit.account.ledger.amounts import ReleaseRecord
from tacit.account.ledger.charges import presence_charge
from tacit.cli.terminal import output_console
from tacit.rounding import rounded_up

SHORT_HASH: Final = 12
NUMERIC: Final = frozenset({"epsilon", "delta", "jobs", "subjects", "release"})


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    console = output_console()
    if not rows:  # on the line of the title: a lone "none" below another says nothing
        console.print(Text(f"{title}: none", style="dim"))
        return
    console.print(Text(title, style="bold"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        numeric = column in NUMERIC
        table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    console.print()


def _cost(record: ReleaseRecord, spent: Spent | None) -> tuple[str, str]:
    """Epsilon and delta of a release, counted as the sum of its data set is: for adding or removing a record if all
    releases promise that, for replacing one otherwise."""
    presence = presence_charge(record.guarantee) if spent is not None and spent.presence else None
    if presence is not None:
        return _number(presence.epsilon + presence.added), _number(presence.delta)
    epsilon = "no plain" if record.epsilon is None else _number(record.epsilon)
    return epsilon, "" if record.delta is None else _number(record.delta)


def show_everything(ledger: Ledger, dataset: str | None, last: int) -> None:
    totals = {name: spent for name, spent in ledger.datasets().items() if dataset in (None, name)}
    rows = [
        (name, _number(spent.epsilon), _number(spent.delta), f"{spent.releases:,}") for name, spent in totals.items()
    ]
    _table("Spent on one document of each data set, at most", ("data set", "epsilon", "delta", "jobs"), rows)
    _show_apart(totals)
    records = ledger.releases(dataset=dataset, last=last)
    _table(
        f"The newest releases (at most {last:,})",
        ("release", "time (UTC)", "data set", "mechanism", "epsilon", "delta", "subjects", "state"),
        [
            (
                str(record.id),
                record.created[:16].replace("T", " "),
                record.dataset,
                record.guarantee.mechanism.partition(" (")[0],
                *_cost(record, totals.get(record.dataset)),
                f"{record.subjects:,}" if record.subjects else "all",
                "open" if record.state == "reserved" else record.state,
            )
            for record in records
        ],
    )
    show_limits(ledger.limits())


def _show_apart(totals: dict[str, Spent]) -> None:
    rows = [
        (name, account.measure, _number(account.epsilon), f"{account.releases:,}")
        for name, spent in totals.items()
        for account in spent.apart
    ]
    if rows:
        _table("Without a plain epsilon: never added to others", ("data set", "notion", "epsilon", "jobs"), rows)


def show_limits(limits: list[Limit]) -> None:
    rows = [
        (
            each.kind,
            (each.dataset or "each") if each.kind == "dataset" else (each.name[:SHORT_HASH] or "each"),
            "" if each.kind == "dataset" else each.dataset or "all together",
            _number(each.epsilon),
            _number(each.delta),
        )
        for each in limits
    ]
    _table("Limits", ("who", "name (hash)", "in data set", "epsilon", "delta"), rows)


def show_subject(ledger: Ledger, subject: Subject, dataset: str | None, *, as_json: bool) -> None:
    spent = ledger.spent(subject, dataset)
    limit = ledger.limit_of(subject, dataset)
    if as_json:
        apart = [vars(account) for account in spent.apart]
        click.echo(json.dumps({**vars(spent), "apart": apart, "limit": None if limit is None else limit._asdict()}))
        return
    left = "" if limit is None else f"; the limit is {limit}"
    known = spent.releases or spent.apart
    click.echo(
        f"this {subject.kind} has spent {spent}{left}" if known else f"this {subject.kind} is in no release{left}"
    )


def _number(value: float) -> str:
    return rounded_up(value, 6 if value >= 1e-3 else 3)
