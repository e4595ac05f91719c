"""`tacit ledger`: what was spent, what may be spent, and whether anything was changed afterwards. Backups and keys are
in `ledger_keeping`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli import ledger_keeping as keeping
from tacit.errors import BadInputError, BadParameterError
from tacit.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.account.ledger import Ledger, Limit, Spent, Subject

KINDS: Final = ("document", "user", "key")
LIMITED: Final = (*KINDS, "dataset")
SHORT_HASH: Final = 12
NUMERIC: Final = frozenset({"epsilon", "delta", "jobs", "subjects", "release"})

app = typer.Typer(
    help="The ledger of spent budget. 'tacit rewrite --ledger FILE' writes into it; limits in it are kept by every "
    "release. A ledger is a file, or postgresql://USER@HOST/DATABASE. Names and texts are only stored as hashes under "
    "a key that lies elsewhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Place = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or a PostgreSQL URL.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@app.command()
def show(
    place: Place,
    dataset: Annotated[str | None, typer.Option(help="Only releases of this data set.")] = None,
    document: Annotated[str | None, typer.Option(help="What this document (its text) has spent.")] = None,
    document_file: Annotated[
        Path | None,
        typer.Option("--document-file", help="The same, with the text in a file; '-' reads standard input."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="What this user has spent.")] = None,
    key: Annotated[str | None, typer.Option(help="What this API key has spent.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest releases to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What was spent: by data set, by release, or by one document or user.

    Open reservations count as spent: they belong to runs that are not finished, or that were stopped. Costs without a
    plain epsilon are listed by their notion and never added to others.

    A private text on the command line stays in the history of the shell: --document-file keeps it out. One line break
    at the end of the file is no part of the text.

    Examples:

    tacit ledger show budget.db

    tacit ledger show budget.db --user u17

    tacit ledger show budget.db --document-file letter.txt
    """
    from tacit.account.ledger import Subject, open_ledger

    if document_file is not None:
        if document is not None:
            raise BadParameterError("give the document as --document or as --document-file, not both")
        document = _text_of(document_file)
    asked = [Subject(kind, name) for kind, name in zip(KINDS, (document, user, key), strict=True) if name is not None]
    if len(asked) > 1:
        raise BadParameterError("ask for one document, user or key at a time")
    with open_ledger(place, create=False) as ledger:
        if asked:
            _show_subject(ledger, asked[0], dataset, as_json)
        elif as_json:
            typer.echo(json.dumps(ledger.export(dataset=dataset, last=last), ensure_ascii=False))
        else:
            _show_everything(ledger, dataset, last)


@app.command()
def limit(
    place: Place,
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Who is limited: document, user, dataset or key.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("-e", "--epsilon", help="The most each of them may spend.")] = None,
    delta: Annotated[float, typer.Option(help="The most delta each of them may spend.")] = 0.0,
    name: Annotated[
        str | None, typer.Option(help="Only this one; its own limit counts in place of the general.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only what is spent in this data set.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the limit away.")] = False,
) -> None:
    """Set a limit, or list the limits. A release that would break one is refused before any noise is drawn.

    Limits are plain epsilons of whole documents: at the word level the epsilons of all words of a text add up (with
    distances, through the largest distance). Releases without a proven plain epsilon are refused by any limit. What
    was spent before counts. A ledger that is not there yet is made.

    Examples:

    tacit ledger limit budget.db document --epsilon 10

    tacit ledger limit budget.db user --epsilon 20 --delta 1e-6

    tacit ledger limit budget.db dataset --name support-2026 --epsilon 50
    """
    from tacit.account.ledger import open_ledger

    if kind is None:
        if epsilon is not None or remove:
            raise BadParameterError("say who is limited: document, user, dataset or key")
        with open_ledger(place, create=False) as ledger:
            _show_limits(ledger.limits())
        return
    if epsilon is not None and kind not in LIMITED:  # before a new ledger is made
        raise BadParameterError(f"a limit is per document, user, dataset or key: choose one of these, not '{kind}'")
    if (epsilon is None) != remove:
        raise BadParameterError("give --epsilon to set a limit, or --remove to take it away")
    with open_ledger(place, create=not remove) as ledger:
        tell_if_new(ledger)
        if epsilon is None:
            ledger.remove_limit(kind, name=name, dataset=dataset)
        else:
            ledger.set_limit(kind, epsilon=epsilon, delta=delta, name=name, dataset=dataset)
        _show_limits(ledger.limits())


@app.command()
def add(
    place: Place,
    card: Annotated[Path, typer.Argument(metavar="CARD.json", help="The privacy card of a release.")],
    dataset: Annotated[str, typer.Option(help="The data set that the release was made from.")],
    again: Annotated[
        bool, typer.Option("--again", help="The same card was released a second time: count it once more.")
    ] = False,
) -> None:
    """Write down a release that was made elsewhere: a trained model, synthetic text, a file rewritten without a ledger.

    It counts for the data set and for every document in it, because a card does not say whose texts they were; for
    users only if the card's unit is the user. A card that is added twice counts once, unless --again is given.

    Example: tacit ledger add budget.db model/card.json --dataset support-2026
    """
    from tacit.account.ledger import Subject, open_ledger
    from tacit.card import Card

    text = _read(card)
    read = Card.from_json(text)
    units = _units(read)
    with open_ledger(place) as ledger:
        tell_if_new(ledger)
        count = 1
        if again:
            count += len([record for record in ledger.releases(dataset=dataset) if record.guarantee == read.guarantee])
        command = read.facts.command if read.facts is not None else ""
        reservation = ledger.reserve(
            read.guarantee,
            dataset=dataset,
            subjects=[Subject("dataset", dataset, units)],
            token=f"card {count} {text}",
            command=command or f"tacit ledger add {card.name}",
        )
        known = reservation.state == "committed"
        reservation.commit()
        said = "this card is in the ledger already" if known else f"written down as release {reservation.release}"
        spent = ledger.spent(Subject("dataset", dataset))
    typer.echo(f"{said}; one document of '{dataset}' has now spent at most {spent}")


@app.command()
def export(
    place: Place,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; else standard output.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Only releases of this data set.")] = None,
    subjects: Annotated[
        bool, typer.Option("--subjects", help="Also what each release cost each subject (as hashes).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Everything as one JSON object, with the anchor that 'tacit ledger verify' compares later.

    Example: tacit ledger export budget.db -o budget.json
    """
    from tacit.account.ledger import open_ledger
    from tacit.text.files import write_whole

    if output is not None and output.exists() and not force:
        raise BadInputError(f"'{output}' exists: add --force to overwrite it, or choose another name with -o")
    with open_ledger(place, create=False) as ledger:
        text = json.dumps(ledger.export(dataset=dataset, subjects=subjects), ensure_ascii=False, indent=1)
    if output is None:
        typer.echo(text)
    else:
        write_whole(output, text + "\n")


@app.command()
def verify(
    place: Place,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="N:HASH",
            help="An anchor from before: events up to it must be there, unchanged. Default: the one beside the key.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Whether every line is as it was written. Exits with 1 if not.

    Changed, removed, added or reordered lines are found, unless whoever did it has the key. Lines that are cut off at
    the end, and an older file in place of the ledger, are found with the anchor that is kept beside the key. Whoever
    can write there as well can hide it: keep the anchor that this command prints on another machine, too.

    A backup is older than its ledger: verify it with the anchor that was printed when it was made.

    Examples:

    tacit ledger verify budget.db

    tacit ledger verify backup.db --anchor 42:9f86d0…
    """
    from tacit.account.ledger import open_ledger

    with open_ledger(place, create=False) as ledger:
        found = ledger.verify(anchor)
    if as_json:
        typer.echo(json.dumps({"ok": found.ok, **vars(found)}, ensure_ascii=False))
    elif found.ok:
        end = "; no anchor was kept yet, so whether lines are missing at the end is not known"
        end = "" if found.compared_with_anchor else end
        typer.echo(f"all {found.events:,} events and their releases ({found.releases:,}) are as they were written{end}")
        for told in found.notes:
            typer.echo(told)
        typer.echo(f"anchor: {found.anchor}")
    else:
        for problem in found.problems:
            typer.echo(problem)
    if not found.ok:
        if not as_json:
            typer.echo("this ledger was changed: what it says about spent budget cannot be relied on", err=True)
        raise typer.Exit(1)


app.command()(keeping.backup)
app.command()(keeping.restore)
app.command()(keeping.accept)
app.command("rotate-key")(keeping.rotate_key)


def tell_if_new(ledger: Ledger) -> None:
    """Say loudly, also with --quiet, that a ledger was made: whoever misspelled a name, or lost the file, has to know
    that what was spent before is not counted."""
    if ledger.making is not None:
        typer.echo(ledger.making, err=True)


def _text_of(path: Path) -> str:
    import sys

    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInputError(f"'{path}' cannot be read as UTF-8 text: give a file that holds the document") from None
    return text.removesuffix("\n").removesuffix("\r")


# Cards --------------------------------------------------------------------------------------------------------------


def _read(card: Path) -> str:
    try:
        return card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInputError(f"'{card}' cannot be read: give the JSON card of a release") from None


def _units(card: Any) -> int:
    """How many units of the guarantee the largest row of the release holds."""
    from tacit.guarantee import Model, Unit

    if card.guarantee.model is Model.CENTRAL or card.guarantee.unit in (Unit.USER, Unit.RECORD):  # a record is a row
        return 1
    if card.facts is None:
        raise BadInputError("this card does not say how long its texts are: add the card that lies beside the release")
    return max(1, int(card.facts.longest_row))


# Tables -------------------------------------------------------------------------------------------------------------


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from tacit.cli.terminal import output_console

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


def _show_everything(ledger: Ledger, dataset: str | None, last: int) -> None:
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
                "no plain" if record.epsilon is None else _number(record.epsilon),
                "" if record.delta is None else _number(record.delta),
                f"{record.subjects:,}" if record.subjects else "all",
                "open" if record.state == "reserved" else record.state,
            )
            for record in records
        ],
    )
    _show_limits(ledger.limits())


def _show_apart(totals: dict[str, Spent]) -> None:
    rows = [
        (name, account.measure, _number(account.epsilon), f"{account.releases:,}")
        for name, spent in totals.items()
        for account in spent.apart
    ]
    if rows:
        _table("Without a plain epsilon: never added to others", ("data set", "notion", "epsilon", "jobs"), rows)


def _show_limits(limits: list[Limit]) -> None:
    rows = [
        (
            found.kind,
            (found.dataset or "each") if found.kind == "dataset" else (found.name[:SHORT_HASH] or "each"),
            "" if found.kind == "dataset" else found.dataset or "all together",
            _number(found.epsilon),
            _number(found.delta),
        )
        for found in limits
    ]
    _table("Limits", ("who", "name (hash)", "in data set", "epsilon", "delta"), rows)


def _show_subject(ledger: Ledger, subject: Subject, dataset: str | None, as_json: bool) -> None:
    spent = ledger.spent(subject, dataset)
    found = ledger.limit_of(subject, dataset)
    if as_json:
        apart = [vars(account) for account in spent.apart]
        typer.echo(json.dumps({**vars(spent), "apart": apart, "limit": None if found is None else found._asdict()}))
        return
    left = "" if found is None else f"; the limit is {found}"
    known = spent.releases or spent.apart
    typer.echo(
        f"this {subject.kind} has spent {spent}{left}" if known else f"this {subject.kind} is in no release{left}"
    )


def _number(value: float) -> str:
    return rounded_up(value, 6 if value >= 1e-3 else 3)
