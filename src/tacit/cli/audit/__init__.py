"""`tacit audit`: is a promise true, and what do a release or a model give away?"""

from __future__ import annotations

import typer

from tacit.cli.audit.canaries import canaries
from tacit.cli.audit.mechanism import mechanism
from tacit.cli.audit.model import model
from tacit.cli.audit.text import text

app = typer.Typer(
    help="Check a privacy claim, or attack a released file or a trained model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(mechanism)
app.command()(text)
app.command()(model)
app.command()(canaries)
