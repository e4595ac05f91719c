"""`tacit serve`: the HTTP service and its page, and the keys of those who may use it."""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

import click
from pydantic import Field

from tacit.cli.generated import acting_group, command_for, group_of
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Delta, Epsilon, Name, Quiet, RefuseNominal
from tacit.loading import collection_paused
from tacit.rounding import rounded_up
from tacit.serve.binding import rebind
from tacit.serve.keys import KeyBudget, KeyOptions, Keys
from tacit.serve.settings import ServicePlace, ServiceSettings, ServiceState

T = TypeVar("T")
RequestsPerMinute = Annotated[T, Field(description="How often it may ask."), Option(Group.PRIVACY)]


class ServiceLogOptions(Config):
    """Options of the log of a service."""

    job: ClassVar[str] = "service log"

    quiet: Annotated[Quiet, Field(description="No line per request.")] = False


SERVE = """Serve the page and the HTTP interface. 'tacit serve keys' manages who may use it.

Example: tacit serve --port 8000, then open http://127.0.0.1:8000
"""


def serve(settings: ServiceSettings, log: ServiceLogOptions) -> None:
    with collection_paused():
        from tacit.serve.run import run  # needs the libraries of the service

    run(settings, quiet=log.quiet, write_command=_command_line)


def _command_line(config: Config) -> str:
    from tacit.cli.command_line import command_line  # all jobs by name, for the first caller who wants advice

    return command_line(config)


# Keys ---------------------------------------------------------------------------------------------------------------


class KeyAddOptions(ServicePlace):
    """A new key and its budget."""

    job: ClassVar[str] = "serve keys add"

    name: Annotated[Name[str], Field(description="Whose key it is, such as 'support-team'.")]
    epsilon: Annotated[Epsilon[float | None], Field(description="Budget of all its requests together.")] = None
    delta: Annotated[Delta[float], Field(description="With an epsilon: the delta it may spend.")] = 1e-6
    requests_per_minute: RequestsPerMinute[int] = 600
    refuse_nominal: Annotated[
        RefuseNominal[bool], Field(description="Refuse its releases whose formal bound no longer protects.")
    ] = False


ADD = """Make a key, with a budget if you give one, and print it. It is shown once; only its hash is kept.

The state folder remembers the ledger in which its keys are counted. From then on 'tacit serve' releases nothing
while that ledger is missing, or another one is given.
"""


def add_key(options: KeyAddOptions) -> None:
    from tacit.serve import budget  # needs the libraries of the service

    limit = None if options.epsilon is None else KeyBudget(options.epsilon, options.delta)
    rules = KeyOptions(options.refuse_nominal)
    secret, making = budget.add_key(options, options.name, options.requests_per_minute, limit, rules)
    if making is not None:
        click.echo(making, err=True)
    click.echo(secret)
    most = "no limit on its budget" if limit is None else f"epsilon {rounded_up(limit.epsilon)} in all"
    nominal = ", nothing nominal" if options.refuse_nominal else ""
    click.echo(
        f"'{options.name}': {most}, {options.requests_per_minute} requests a minute{nominal}. The key is not shown "
        "again.",
        err=True,
    )


LIST = """Show all keys and what they have spent; "without epsilon" counts releases that have no plain one to add. A key
without a limit has a number for each unit of its releases, all of them as epsilons of whole texts.
"""


def list_keys(place: ServicePlace) -> None:
    from rich.table import Table  # a service that starts draws no table

    from tacit.cli.terminal import output_console
    from tacit.serve import budget  # needs the libraries of the service

    known = Keys(place.state).all()
    if not known:
        raise BadInputError("no-keys", "there are no keys yet: make one with 'tacit serve keys add NAME'")
    accounts = budget.key_accounts(place, [key.name for key in known])
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "made", "revoked", "per minute", "nominal", "epsilon spent", "of", "without epsilon"):
        table.add_column(heading)
    for key in known:
        spent, by_unit, limit = accounts[key.name]
        most = "no limit" if limit is None else rounded_up(limit.epsilon)
        apart = str(sum(account.releases for account in spent.apart) or "")
        nominal = "refused" if key.options.refuse_nominal else ""
        row = (key.name, key.created[:10], (key.revoked or "")[:10], str(key.requests_per_minute), nominal)
        # A limit is held against the sum; without one, different units are not added up.
        parts = "; ".join(f"{rounded_up(part.epsilon)} per {unit}" for unit, part in sorted(by_unit.items())) or "0"
        table.add_row(*row, parts if limit is None else rounded_up(spent.epsilon), most, apart)
    output_console().print(table)


class ChangeOptions(ServiceState):
    """Options of the change of a key."""

    job: ClassVar[str] = "serve keys change"

    name: Annotated[Name[str], Field(description="The key to change.")]
    requests_per_minute: RequestsPerMinute[int | None] = None
    refuse_nominal: Annotated[
        RefuseNominal[bool | None],
        Field(description="Refuse it releases whose card says 'nominal', or not."),
        Varied(off_name="allow_nominal"),
    ] = None


CHANGE = """Change the settings of a key, at once also for a running service. Its budget is changed with 'tacit ledger
limit LEDGER key --name NAME --epsilon E'.
"""


def change_key(options: ChangeOptions) -> None:
    if options.requests_per_minute is None and options.refuse_nominal is None:
        raise BadParameterError(
            "nothing-to-change",
            "say what to change: {option.requests_per_minute}, {option.refuse_nominal} or {option.allow_nominal}",
        )
    keys = Keys(options.state)
    if options.requests_per_minute is not None:
        keys.set_rate(options.name, options.requests_per_minute)
    if options.refuse_nominal is not None:
        keys.set_options(options.name, refuse_nominal=options.refuse_nominal)
    click.echo(f"'{options.name}' is changed", err=True)


class RevokeOptions(ServiceState):
    """The key that ends."""

    job: ClassVar[str] = "serve keys revoke"

    name: Annotated[Name[str], Field(description="The key to end.")]


def revoke_key(options: RevokeOptions) -> None:
    Keys(options.state).revoke(options.name)
    click.echo(f"'{options.name}' is revoked", err=True)


REBIND = """Let another ledger count from now on: the one in which the keys were counted is lost, or was moved.

A service releases nothing while the ledger that its state folder remembers is missing or another one. After a
backup was restored ('tacit ledger restore') nothing has to be done here: it is still the same ledger.

A key keeps the limit that it has in the other ledger. One that has none there gets its whole budget anew: what it
had spent is forgotten.

Example: tacit serve keys rebind --ledger postgresql://USER@HOST/DATABASE
"""


def rebind_keys(place: ServicePlace) -> None:
    from tacit.cli.terminal import tell_if_new

    ledger, anew = rebind(place.ledger_place, Keys(place.state))
    with ledger:
        tell_if_new(ledger)
        click.echo(f"from now on {ledger.name} (id {ledger.id}) counts for '{place.state}'", err=True)
    if anew:
        click.echo(f"these keys begin anew, with their whole budget: {', '.join(anew)}", err=True)


keys = group_of(
    "keys",
    [
        command_for("add", [KeyAddOptions], add_key, help=ADD),
        command_for("list", [ServicePlace], list_keys, help=LIST),
        command_for("change", [ChangeOptions], change_key, help=CHANGE),
        command_for(
            "revoke",
            [RevokeOptions],
            revoke_key,
            help="End a key at once: its requests are refused and its jobs stop. What it spent stays in the ledger.",
        ),
        command_for("rebind", [ServicePlace], rebind_keys, help=REBIND),
    ],
    help="Who may use a service.",
)

command = acting_group("serve", [keys], [ServiceSettings, ServiceLogOptions], serve, help=SERVE)
