"""`tacit ledger`: what was spent, what may be spent, and whether anything was changed afterwards. Backups and keys are
in `ledger_keeping`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Final

import click
from pydantic import Field

from tacit.account.ledger import Subject, open_ledger
from tacit.account.ledger.cards import add_card
from tacit.cli import ledger_keeping, ledger_tables
from tacit.cli.generated import command_for, group_of
from tacit.cli.ledger_keeping import LedgerOptions
from tacit.cli.terminal import tell_if_new
from tacit.errors import BadInputError, BadParameterError, check_choice
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import AsJson, Dataset, Delta, Epsilon, Force, Name, Output
from tacit.text.files import write_whole

KINDS: Final = ("document", "user", "key")
LIMITED: Final = (*KINDS, "dataset")

DatasetOnly = Annotated[
    Dataset[str | None],
    Field(description="Only what is spent or released in this data set."),
    Varied(group=Group.DATA),
]


class LedgerShowOptions(LedgerOptions):
    """Options of `tacit ledger show`: all spending, or that of one document, user or key."""

    job: ClassVar[str] = "ledger show"

    dataset: DatasetOnly = None
    document: Annotated[
        str | None, Field(description="What this document (its text) has spent."), Option(Group.DATA)
    ] = None
    document_file: Annotated[
        Path | None,
        Field(description="The same, with the text in a file; '-' reads standard input."),
        Option(Group.DATA),
    ] = None
    user: Annotated[str | None, Field(description="What this user has spent."), Option(Group.DATA)] = None
    key: Annotated[str | None, Field(description="What this API key has spent."), Option(Group.DATA)] = None
    last: Annotated[int, Field(ge=1, description="How many of the newest releases to list."), Option(Group.RUN)] = 20
    as_json: AsJson = False

    def subject(self) -> Subject | None:
        """Whose spending is shown; None for everything."""
        if self.document is not None and self.document_file is not None:
            raise BadParameterError(
                "document-twice",
                "give the document as {option.document} or as {option.document_file}, not both",
            )
        document = self.document if self.document_file is None else _text_of(self.document_file)
        named = zip(KINDS, (document, self.user, self.key), strict=True)
        subjects = [Subject(kind, name) for kind, name in named if name is not None]
        if len(subjects) > 1:
            raise BadParameterError("several-subjects", "ask for one document, user or key at a time")
        return subjects[0] if subjects else None


SHOW = """What was spent: by data set, by release, or by one document or user.

Open reservations count as spent: they belong to runs that are not finished, or that were stopped. Costs without a
plain epsilon are listed by their notion and never added to others.

A private text on the command line stays in the history of the shell: --document-file keeps it out. One line break
at the end of the file is no part of the text.

Examples:

tacit ledger show budget.db

tacit ledger show budget.db --user u17

tacit ledger show budget.db --document-file letter.txt
"""


def show(options: LedgerShowOptions) -> None:
    subject = options.subject()
    with open_ledger(options.place, create=False) as ledger:
        if subject is not None:
            ledger_tables.show_subject(ledger, subject, options.dataset, as_json=options.as_json)
        elif options.as_json:
            click.echo(json.dumps(ledger.export(dataset=options.dataset, last=options.last), ensure_ascii=False))
        else:
            ledger_tables.show_everything(ledger, options.dataset, options.last)


class LimitOptions(LedgerOptions):
    """Who may spend how much."""

    job: ClassVar[str] = "ledger limit"

    limited: Annotated[
        str | None,
        Field(description="Who is limited: document, user, dataset or key."),
        Option(Group.PRIVACY, positional=True, metavar="[KIND]"),
    ] = None
    epsilon: Annotated[Epsilon[float | None], Field(description="The most each of them may spend.")] = None
    delta: Annotated[Delta[float], Field(description="The most delta each of them may spend.")] = 0.0
    name: Annotated[
        Name[str | None],
        Field(description="Only this one; its own limit counts in place of the general."),
        Varied(group=Group.PRIVACY, positional=False),
    ] = None
    dataset: DatasetOnly = None
    remove: Annotated[bool, Field(description="Take the limit away."), Option(Group.PRIVACY)] = False

    def check(self) -> None:
        """Whether the options fit together, before a new ledger is made."""
        if self.limited is None:
            if self.epsilon is not None or self.remove:
                raise BadParameterError("limit-of-whom", "say who is limited: document, user, dataset or key")
            return
        if self.epsilon is not None:
            check_choice(self.limited, LIMITED, code="bad-limit-kind", what="limit per")
        if (self.epsilon is None) != self.remove:
            raise BadParameterError(
                "limit-or-removal",
                "give {option.epsilon} to set a limit, or {option.remove} to take it away",
            )


LIMIT = """Set a limit, or list the limits. A release that would break one is refused before any noise is drawn.

Limits are plain epsilons of whole documents: at the word level the epsilons of all words of a text add up (with
distances, through the largest distance). Releases without a proven plain epsilon are refused by any limit. What
was spent before counts. A ledger that is not there yet is made.

Examples:

tacit ledger limit budget.db document --epsilon 10

tacit ledger limit budget.db user --epsilon 20 --delta 1e-6

tacit ledger limit budget.db dataset --name support-2026 --epsilon 50
"""


def limit(options: LimitOptions) -> None:
    options.check()
    if options.limited is None:
        with open_ledger(options.place, create=False) as ledger:
            ledger_tables.show_limits(ledger.limits())
        return
    names = {"name": options.name, "dataset": options.dataset}
    with open_ledger(options.place, create=not options.remove) as ledger:
        tell_if_new(ledger)
        if options.epsilon is None:
            ledger.remove_limit(options.limited, **names)
        else:
            ledger.set_limit(options.limited, epsilon=options.epsilon, delta=options.delta, **names)
        ledger_tables.show_limits(ledger.limits())


class LedgerAddOptions(LedgerOptions):
    """The card of a release that is written down."""

    job: ClassVar[str] = "ledger add"

    added_card: Annotated[
        Path,
        Field(description="The privacy card of a release."),
        Option(Group.DATA, positional=True, metavar="CARD.json"),
    ]
    dataset: Annotated[
        Dataset[str], Field(description="The data set that the release was made from."), Varied(group=Group.DATA)
    ]
    again: Annotated[
        bool,
        Field(description="The same card was released a second time: count it once more."),
        Option(Group.PRIVACY),
    ] = False


ADD = """Write down a release that was made elsewhere: a trained model, synthetic text, a file without a ledger.

It counts for the data set and for every document in it, because a card does not say whose texts they were; for
users only if the card's unit is the user. A card that is added twice counts once, unless --again is given.

Example: tacit ledger add budget.db model/card.json --dataset support-2026
"""


def add(options: LedgerAddOptions) -> None:
    text = _card_text(options.added_card)
    with open_ledger(options.place) as ledger:
        tell_if_new(ledger)
        added = add_card(ledger, text, dataset=options.dataset, again=options.again, name=options.added_card.name)
        spent = ledger.spent(Subject("dataset", options.dataset))
    state = "this card is in the ledger already" if added.known else f"written down as release {added.release}"
    click.echo(f"{state}; one document of '{options.dataset}' has now spent at most {spent}")


class ExportOptions(LedgerOptions):
    """Options of `tacit ledger export`: the data set and the file."""

    job: ClassVar[str] = "ledger export"

    output: Annotated[Output[Path | None], Field(description="The file to write; else standard output.")] = None
    dataset: DatasetOnly = None
    subjects: Annotated[
        bool, Field(description="Also what each release cost each subject (as hashes)."), Option(Group.DATA)
    ] = False
    force: Force = False


EXPORT = """Everything as one JSON object, with the anchor that 'tacit ledger verify' compares later.

Example: tacit ledger export budget.db -o budget.json
"""


def export(options: ExportOptions) -> None:
    if options.output is not None and options.output.exists() and not options.force:
        raise BadInputError(
            "file-exists",
            "'{path}' exists: add {option.force} to overwrite it, or choose another name with {option.output}",
            path=options.output,
        )
    with open_ledger(options.place, create=False) as ledger:
        content = ledger.export(dataset=options.dataset, subjects=options.subjects)
    text = json.dumps(content, ensure_ascii=False, indent=1)
    if options.output is None:
        click.echo(text)
    else:
        write_whole(options.output, text + "\n")


class VerifyOptions(LedgerOptions):
    """Options of `tacit ledger verify`: the anchor that the ledger is compared with."""

    job: ClassVar[str] = "ledger verify"

    anchor: Annotated[
        str | None,
        Field(
            description="An anchor from before: events up to it must be there, unchanged. Default: the one beside the "
            "key."
        ),
        Option(Group.DATA, metavar="N:HASH"),
    ] = None
    as_json: AsJson = False


VERIFY = """Whether every line is as it was written. Exits with 1 if not.

Changed, removed, added or reordered lines are found, unless whoever did it has the key. Lines that are cut off at
the end, and an older file in place of the ledger, are found with the anchor that is kept beside the key. Whoever
can write there as well can hide it: keep the anchor that this command prints on another machine, too.

A backup is older than its ledger: verify it with the anchor that was printed when it was made.

Examples:

tacit ledger verify budget.db

tacit ledger verify backup.db --anchor 42:9f86d0…
"""


def verify(options: VerifyOptions) -> None:
    with open_ledger(options.place, create=False) as ledger:
        verified = ledger.verify(options.anchor)
    if options.as_json:
        click.echo(json.dumps({"ok": verified.ok, **vars(verified)}, ensure_ascii=False))
    elif verified.ok:
        end = "; no anchor was kept yet, so whether lines are missing at the end is not known"
        end = "" if verified.compared_with_anchor else end
        click.echo(
            f"all {verified.events:,} events and their releases ({verified.releases:,}) are as they were written{end}"
        )
        for note in verified.notes:
            click.echo(note)
        click.echo(f"anchor: {verified.anchor}")
    else:
        for problem in verified.problems:
            click.echo(problem)
    if not verified.ok:
        if not options.as_json:
            click.echo("this ledger was changed: what it says about spent budget cannot be relied on", err=True)
        raise click.exceptions.Exit(1)


def _text_of(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            "unreadable-document",
            "'{path}' cannot be read as UTF-8 text: give a file that holds the document",
            path=path,
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def _card_text(card: Path) -> str:
    try:
        return card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            "unreadable-card", "'{path}' cannot be read: give the JSON card of a release", path=card
        ) from None


command = group_of(
    "ledger",
    [
        command_for("show", [LedgerShowOptions], show, help=SHOW),
        command_for("limit", [LimitOptions], limit, help=LIMIT),
        command_for("add", [LedgerAddOptions], add, help=ADD),
        command_for("export", [ExportOptions], export, help=EXPORT),
        command_for("verify", [VerifyOptions], verify, help=VERIFY),
        *ledger_keeping.commands,
    ],
    help="The ledger of spent budget. 'tacit rewrite --ledger FILE' writes into it; limits in it are kept by every "
    "release. A ledger is a file, or postgresql://USER@HOST/DATABASE. Names and texts are only stored as hashes under "
    "a key that lies elsewhere.",
)
