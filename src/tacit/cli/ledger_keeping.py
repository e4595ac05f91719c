"""Commands of `tacit ledger` that keep a ledger safe: backup, restore, accept, rotate-key."""

from __future__ import annotations

import os
from typing import Annotated

import typer

Place = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or a PostgreSQL URL.")]
NewPlace = Annotated[
    str, typer.Argument(metavar="COPY", help="Where the copy goes: a file or a PostgreSQL database without a ledger.")
]
Copy = Annotated[str, typer.Argument(metavar="COPY", help="A copy that 'tacit ledger backup' made.")]
NewLedger = Annotated[
    str, typer.Argument(metavar="LEDGER", help="Where the ledger goes: a file that is not there, or a PostgreSQL URL.")
]


def backup(place: Place, copy: NewPlace) -> None:
    """Copy a ledger while it is in use, and verify the copy. Nothing is overwritten.

    The copy is of one moment, complete or not there at all. The key is not in it: keep a copy of the key in another
    place than the backup, because both together tell who is in the ledger. A copy is older than its ledger as soon as
    something is spent; 'tacit ledger restore' brings it back, and 'tacit ledger accept' goes on with it.

    Examples:

    tacit ledger backup budget.db /backups/budget-2026-11-18.db

    tacit ledger backup postgresql://USER@HOST/DATABASE budget.db
    """
    from tacit.account.ledger import open_ledger

    with open_ledger(place, create=False) as ledger:
        found = ledger.copy_to(copy)
    typer.echo(f"copied and verified: {found.events:,} events, {found.releases:,} releases")
    typer.echo(f"anchor of the copy: {found.anchor}")
    typer.echo(f"the key is not in the copy: {_key_place(ledger.id)}, keep it somewhere else", err=True)


def restore(copy: Copy, place: NewLedger) -> None:
    """Bring a ledger back from a copy, or move it between a file and PostgreSQL. Nothing is overwritten.

    If the copy is older than the anchor beside the key, nothing can be spent from the restored ledger until
    'tacit ledger accept': what was spent since the copy was made is not in it.

    Example: tacit ledger restore /backups/budget-2026-11-18.db budget.db
    """
    from tacit.account.ledger import open_ledger

    with open_ledger(copy, create=False) as ledger:
        found = ledger.copy_to(place)
    typer.echo(f"restored and verified: {found.events:,} events, {found.releases:,} releases")
    with open_ledger(place, create=False) as restored:
        problems = restored.verify().problems
    if problems:
        typer.echo(
            f"this is an older ledger ({problems[0]}): nothing can be spent from it; look for a newer copy, or go on "
            f"with 'tacit ledger accept'",
            err=True,
        )


def accept(place: Place) -> None:
    """Go on with an older copy of a ledger, because the newest one is lost.

    Nothing can be spent from a ledger that lacks events which its anchor knows: what they had spent would be spent
    again. This command says that the events are lost for good. It is written into the ledger, where 'tacit ledger
    verify' shows it from then on. Lower the limits first if you know what was spent meanwhile.

    Example: tacit ledger accept budget.db
    """
    from tacit.account.ledger import open_ledger

    with open_ledger(place, create=False) as ledger:
        typer.echo(ledger.accept())


def rotate_key(place: Place) -> None:
    """Give a ledger a new key: hash all names once more, seal everything anew, and write the key to its file.

    After it, somebody who had the former key can neither test whether a name or text is in the ledger, nor change it
    unnoticed; with copies from before he still can, so delete those. The file of the key keeps the former lines: names
    are hashed under all of them, one after the other. Services that are running go on by themselves. An anchor that you
    kept elsewhere is worth nothing any more: keep the one that is printed.

    With TACIT_LEDGER_KEY set, the new key is written to its file all the same: set the variable to the content of that
    file, or remove it.

    Example: tacit ledger rotate-key budget.db
    """
    from tacit.account.ledger import open_ledger
    from tacit.account.ledger.keys import VARIABLE

    with open_ledger(place, create=False) as ledger:
        path = ledger.change_key()
        anchor = ledger.anchor()
    typer.echo(f"the new key of {ledger.name} is in '{path}': keep a copy of it apart from the ledger")
    typer.echo(f"anchor: {anchor}")
    if os.environ.get(VARIABLE):
        typer.echo(
            f"{VARIABLE} holds the former key, which does not fit any more: remove it, or set it to all lines of "
            f"'{path}'",
            err=True,
        )


def _key_place(ledger: str) -> str:
    from tacit.account.ledger.keys import VARIABLE, key_file

    return f"it is in {VARIABLE}" if os.environ.get(VARIABLE) else f"it is '{key_file(ledger)}'"
