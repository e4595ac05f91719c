"""`tacit serve`: the HTTP service and its page, and the keys of those who may use it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError, BadParameterError, require
from tacit.rounding import rounded_up

app = typer.Typer(
    pretty_exceptions_enable=False,
    add_completion=False,
    help="The HTTP service and its page. 'tacit serve keys' manages who may use it.",
)
keys_app = typer.Typer(pretty_exceptions_enable=False, no_args_is_help=True, help="Who may use a service.")
app.add_typer(keys_app, name="keys")

MOST_MEGABYTES = 1_000_000

State = Annotated[Path | None, typer.Option(help="Folder of keys, jobs and ledger. Default: TACIT_STATE or your own.")]
LedgerPlace = Annotated[str | None, typer.Option("--ledger", help="File or postgresql:// URL of the ledger.")]


@app.callback(invoke_without_command=True)
def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine only with keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 8000,
    state: State = None,
    ledger: LedgerPlace = None,
    reports: Annotated[Path | None, typer.Option(help="Folder of HTML reports to show.")] = None,
    keep_hours: Annotated[float, typer.Option(help="Hours until the files of a job are deleted.")] = 24.0,
    body_mb: Annotated[float, typer.Option("--body-mb", help="Largest JSON body in megabytes.")] = 10.0,
    upload_mb: Annotated[float, typer.Option("--upload-mb", help="Largest uploaded file in megabytes.")] = 1000.0,
    texts: Annotated[int, typer.Option(help="Most texts in one request, counting draws.")] = 10_000,
    waiting: Annotated[int, typer.Option(help="Most requests that wait for their turn.")] = 256,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 60.0,
    threads: Annotated[int, typer.Option(help="Batches worked on at the same time.")] = 2,
    jobs: Annotated[int, typer.Option(help="Jobs at the same time; one key has at most all but one.")] = 2,
    job_workers: Annotated[int, typer.Option(help="Processes that rewrite a job; 1 is that of the job itself.")] = 1,
    job_memory_mb: Annotated[float, typer.Option("--job-memory-mb", help="Memory of a job's process.")] = 4000.0,
    unpacked_mb: Annotated[float, typer.Option("--unpacked-mb", help="Most text in an upload, unpacked.")] = 10_000.0,
    text_characters: Annotated[int, typer.Option(help="Most characters of one text in a request.")] = 100_000,
    connections: Annotated[int, typer.Option(help="Most connections at the same time.")] = 2_000,
    connections_per_address: Annotated[int, typer.Option(help="Most of them from one address.")] = 500,
    requests_per_key: Annotated[int, typer.Option(help="Most open requests of one key.")] = 128,
    operator: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A key that may read /metrics, which counts all keys.")
    ] = None,
    refuse_nominal: Annotated[
        bool,
        typer.Option(
            "--refuse-nominal",
            envvar="TACIT_REFUSE_NOMINAL",
            help="Refuse everybody's releases whose formal bound no longer protects.",
        ),
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION=VALUE", help="An option value that requests may use, such as vectors=FILE."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which the service is reached.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No line per request.")] = False,
) -> None:
    """Serve the page and the HTTP interface.

    Example: tacit serve --port 8000, then open http://127.0.0.1:8000
    """
    if ctx.invoked_subcommand is not None:
        return
    from tacit.serve.run import run

    run(
        _settings(
            host=host,
            port=port,
            state=state,
            ledger=ledger,
            reports=reports,
            keep_hours=keep_hours,
            body_bytes=_bytes("--body-mb", body_mb),
            upload_bytes=_bytes("--upload-mb", upload_mb),
            texts=texts,
            waiting=waiting,
            timeout=timeout,
            threads=threads,
            jobs=jobs,
            job_workers=job_workers,
            job_memory=_bytes("--job-memory-mb", job_memory_mb),
            unpacked=_bytes("--unpacked-mb", unpacked_mb),
            text_characters=text_characters,
            connections=connections,
            connections_per_address=connections_per_address,
            requests_per_key=requests_per_key,
            operators=tuple(operator or ()),
            refuse_nominal=refuse_nominal,
            allowed=tuple(_pair(each) for each in allow or ()),
            hosts=tuple(allow_host or ()),
        ),
        quiet=quiet,
    )


def _bytes(option: str, megabytes: float) -> int:
    if not 0 < megabytes <= MOST_MEGABYTES:  # not a number is refused here, too
        raise BadParameterError(f"{option} is a number of megabytes above 0 and up to {MOST_MEGABYTES:,}")
    return max(1, int(megabytes * 1e6))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise BadParameterError(f"write an allowed option as --allow vectors=FILE, not '{text}'")
    return name.replace("-", "_"), value


def _settings(**values: Any) -> Any:
    require("fastapi", extra="serve", purpose="the service")
    from pydantic import ValidationError

    from tacit.serve.settings import Settings

    try:
        return Settings(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise BadParameterError(f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg'].lower()}") from None


# Keys ---------------------------------------------------------------------------------------------------------------


@keys_app.command("add")
def add_key(
    name: Annotated[str, typer.Argument(help="Whose key it is, such as 'support-team'.")],
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Budget of all its requests together.")
    ] = None,
    delta: Annotated[float, typer.Option(help="With --epsilon: the delta it may spend.")] = 1e-6,
    requests_per_minute: Annotated[int, typer.Option(help="How often it may ask.")] = 600,
    refuse_nominal: Annotated[
        bool,
        typer.Option("--refuse-nominal", help="Refuse its releases whose formal bound no longer protects."),
    ] = False,
    state: State = None,
    ledger: LedgerPlace = None,
) -> None:
    """Make a key, with a budget if you give one, and print it. It is shown once; only its hash is kept.

    The state folder remembers the ledger in which its keys are counted. From then on 'tacit serve' releases nothing
    while that ledger is missing, or another one is given.
    """
    settings = _settings(state=state, ledger=ledger)
    from tacit.serve import budget
    from tacit.serve.keys import KeyBudget, KeyOptions

    given = None if epsilon is None else KeyBudget(epsilon, delta)
    secret, making = budget.add_key(settings, name, requests_per_minute, given, KeyOptions(refuse_nominal))
    if making is not None:
        typer.echo(making, err=True)
    typer.echo(secret)
    told = f"epsilon {rounded_up(epsilon)} in all" if epsilon is not None else "no limit on its budget"
    nominal = ", nothing nominal" if refuse_nominal else ""
    typer.echo(
        f"'{name}': {told}, {requests_per_minute} requests a minute{nominal}. The key is not shown again.", err=True
    )


@keys_app.command("list")
def list_keys(state: State = None, ledger: LedgerPlace = None) -> None:
    """Show all keys and what they have spent; "without epsilon" counts releases that have no plain one to add. A key
    without a limit has a number for each unit of its releases, all of them as epsilons of whole texts."""
    settings = _settings(state=state, ledger=ledger)
    from rich.table import Table

    from tacit.cli.terminal import output_console
    from tacit.serve.budget import key_accounts
    from tacit.serve.keys import Keys

    known = Keys(settings.state).all()
    if not known:
        raise BadInputError("there are no keys yet: make one with 'tacit serve keys add NAME'")
    accounts = key_accounts(settings, [key.name for key in known])
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


@keys_app.command("change")
def change_key(
    name: Annotated[str, typer.Argument(help="The key to change.")],
    requests_per_minute: Annotated[int | None, typer.Option(help="How often it may ask.")] = None,
    refuse_nominal: Annotated[
        bool | None,
        typer.Option("--refuse-nominal/--allow-nominal", help="Refuse it releases whose card says 'nominal', or not."),
    ] = None,
    state: State = None,
) -> None:
    """Change the settings of a key, at once also for a running service. Its budget is changed with 'tacit ledger limit
    LEDGER key --name NAME --epsilon E'."""
    settings = _settings(state=state)
    from tacit.serve.keys import Keys

    if requests_per_minute is None and refuse_nominal is None:
        raise BadParameterError("say what to change: --requests-per-minute, --refuse-nominal or --allow-nominal")
    keys = Keys(settings.state)
    if requests_per_minute is not None:
        keys.set_rate(name, requests_per_minute)
    if refuse_nominal is not None:
        keys.set_options(name, refuse_nominal=refuse_nominal)
    typer.echo(f"'{name}' is changed", err=True)


@keys_app.command("revoke")
def revoke_key(name: Annotated[str, typer.Argument(help="The key to end.")], state: State = None) -> None:
    """End a key at once: its requests are refused and its jobs stop. What it spent stays in the ledger."""
    settings = _settings(state=state)
    from tacit.serve.keys import Keys

    Keys(settings.state).revoke(name)
    typer.echo(f"'{name}' is revoked", err=True)


@keys_app.command("rebind")
def rebind_keys(state: State = None, ledger: LedgerPlace = None) -> None:
    """Let another ledger count from now on: the one in which the keys were counted is lost, or was moved.

    A service releases nothing while the ledger that its state folder remembers is missing or another one. After a
    backup was restored ('tacit ledger restore') nothing has to be done here: it is still the same ledger.

    A key keeps the limit that it has in the other ledger. One that has none there gets its whole budget anew: what it
    had spent is forgotten.

    Example: tacit serve keys rebind --ledger postgresql://USER@HOST/DATABASE
    """
    settings = _settings(state=state, ledger=ledger)
    from tacit.cli.ledger import tell_if_new
    from tacit.serve.binding import rebind
    from tacit.serve.keys import Keys

    opened, anew = rebind(settings.ledger_place, Keys(settings.state))
    with opened:
        tell_if_new(opened)
        typer.echo(f"from now on {opened.name} (id {opened.id}) counts for '{settings.state}'", err=True)
    if anew:
        typer.echo(f"these keys begin anew, with their whole budget: {', '.join(anew)}", err=True)
