"""`tacit decode`: a corpus of what many local releases of a codebook say together."""

from __future__ import annotations

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.jobs.decode import DecodeConfig, run

HELP = """Make a corpus of what many local releases say together: public sentences with labels.

A single row that 'tacit rewrite --mechanism codebook' released says little, but its law is on the card. So the average
of each label is estimated from all rows together, and public sentences are drawn by it. Nothing is spent: whoever has
the release can do it, and the result carries the same promise.

Example: tacit rewrite mails.csv --mechanism codebook --randomize topic --labels a,b,c --epsilon 3 -o private.csv

Example: tacit decode private.csv -o decoded.csv
"""


def decode(config: DecodeConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        made = run(config, bars.show)
    if not shown.quiet:
        console = error_console()
        console.print(f"{len(made):,} rows -> {made.output}", markup=False)
        for label, share in made.shares.items():
            console.print(f"  {label}: {share:.1%} ± {made.deviations[label]:.1%} of the records", markup=False)
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


command = command_for("decode", [DecodeConfig, Quiet], decode, help=HELP)
