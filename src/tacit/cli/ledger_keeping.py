"""Commands of `tacit ledger` that keep a ledger safe: backup, restore, accept, rotate-key."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar

import click
from pydantic import Field

from tacit.account.ledger import open_ledger
from tacit.account.ledger.keys import VARIABLE, key_file
from tacit.cli.generated import command_for
from tacit.jobs.config import Config, Group, Option
from tacit.needs import Ability, needs_of_ledger

Place = Annotated[
    str,
    Field(description="The ledger: a file, or a PostgreSQL URL."),
    Option(Group.DATA, positional=True, metavar="LEDGER"),
]
CopyPlace = Annotated[
    str,
    Field(description="Where the copy goes: a file or a PostgreSQL database without a ledger."),
    Option(Group.DATA, positional=True, metavar="COPY"),
]


class LedgerOptions(Config):
    """The ledger that a command works with."""

    job: ClassVar[str] = "ledger"

    place: Place

    def needs(self) -> list[Ability]:
        return needs_of_ledger(self.place)


class BackupOptions(LedgerOptions):
    """A ledger and the place of its copy."""

    job: ClassVar[str] = "ledger backup"

    copy_place: CopyPlace

    def needs(self) -> list[Ability]:
        return [*super().needs(), *needs_of_ledger(self.copy_place)]


class RestoreOptions(Config):
    """A copy and the place of the ledger that is made from it."""

    job: ClassVar[str] = "ledger restore"

    copy_place: Annotated[CopyPlace, Field(description="A copy that 'tacit ledger backup' made.")]
    place: Annotated[Place, Field(description="Where the ledger goes: a file that is not there, or a PostgreSQL URL.")]

    def needs(self) -> list[Ability]:
        return [*needs_of_ledger(self.copy_place), *needs_of_ledger(self.place)]


BACKUP = """Copy a ledger while it is in use, and verify the copy. Nothing is overwritten.

The copy is of one moment, complete or not there at all. The key is not in it: keep a copy of the key in another
place than the backup, because both together tell who is in the ledger. A copy is older than its ledger as soon as
something is spent; 'tacit ledger restore' brings it back, and 'tacit ledger accept' goes on with it.

Examples:

tacit ledger backup budget.db /backups/budget-2026-11-18.db

tacit ledger backup postgresql://USER@HOST/DATABASE budget.db
"""


def backup(options: BackupOptions) -> None:
    with open_ledger(options.place, create=False) as ledger:
        verified = ledger.copy_to(options.copy_place)
    click.echo(f"copied and verified: {verified.events:,} events, {verified.releases:,} releases")
    click.echo(f"anchor of the copy: {verified.anchor}")
    click.echo(f"the key is not in the copy: {_key_place(ledger.id)}, keep it somewhere else", err=True)


RESTORE = """Bring a ledger back from a copy, or move it between a file and PostgreSQL. Nothing is overwritten.

If the copy is older than the anchor beside the key, nothing can be spent from the restored ledger until
'tacit ledger accept': what was spent since the copy was made is not in it.

Example: tacit ledger restore /backups/budget-2026-11-18.db budget.db
"""


def restore(options: RestoreOptions) -> None:
    with open_ledger(options.copy_place, create=False) as ledger:
        verified = ledger.copy_to(options.place)
    click.echo(f"restored and verified: {verified.events:,} events, {verified.releases:,} releases")
    with open_ledger(options.place, create=False) as restored:
        problems = restored.verify().problems
    if problems:
        click.echo(
            f"this is an older ledger ({problems[0]}): nothing can be spent from it; look for a newer copy, or go on "
            f"with 'tacit ledger accept'",
            err=True,
        )


ACCEPT = """Go on with an older copy of a ledger, because the newest one is lost.

Nothing can be spent from a ledger that lacks events which its anchor knows: what they had spent would be spent
again. This command says that the events are lost for good. It is written into the ledger, where 'tacit ledger
verify' shows it from then on. Lower the limits first if you know what was spent meanwhile.

Example: tacit ledger accept budget.db
"""


def accept(options: LedgerOptions) -> None:
    with open_ledger(options.place, create=False) as ledger:
        click.echo(ledger.accept())


ROTATE_KEY = """Give a ledger a new key: hash all names once more, seal everything anew, and write the key to its file.

After it, somebody who had the former key can neither test whether a name or text is in the ledger, nor change it
unnoticed; with copies from before he still can, so delete those. The file of the key keeps the former lines: names
are hashed under all of them, one after the other. Services that are running go on by themselves. An anchor that you
kept elsewhere is worth nothing any more: keep the one that is printed.

With TACIT_LEDGER_KEY set, the new key is written to its file all the same: set the variable to the content of that
file, or remove it.

Example: tacit ledger rotate-key budget.db
"""


def rotate_key(options: LedgerOptions) -> None:
    with open_ledger(options.place, create=False) as ledger:
        path = ledger.change_key()
        anchor = ledger.anchor()
    click.echo(f"the new key of {ledger.name} is in '{path}': keep a copy of it apart from the ledger")
    click.echo(f"anchor: {anchor}")
    if os.environ.get(VARIABLE):
        click.echo(
            f"{VARIABLE} holds the former key, which does not fit any more: remove it, or set it to all lines of "
            f"'{path}'",
            err=True,
        )


def _key_place(ledger: str) -> str:
    return f"it is in {VARIABLE}" if os.environ.get(VARIABLE) else f"it is '{key_file(ledger)}'"


commands = [
    command_for("backup", [BackupOptions], backup, help=BACKUP),
    command_for("restore", [RestoreOptions], restore, help=RESTORE),
    command_for("accept", [LedgerOptions], accept, help=ACCEPT),
    command_for("rotate-key", [LedgerOptions], rotate_key, help=ROTATE_KEY),
]
