"""`tacit embed`: a file in, vectors of its texts and their privacy card out."""

from __future__ import annotations

import time

from tacit.cli import terminal
from tacit.cli.bars import RewriteBar
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rewrite import show_plan, show_summary, shown_command
from tacit.engines.notices import Notices
from tacit.jobs.embed import EmbedConfig, run, shown_options
from tacit.text.files import STANDARD_STREAM

HELP = """Release vectors of the texts of a file under differential privacy.

For search, clustering and classifiers that read vectors: a noisy vector says more than a text made from it would.

The column of texts becomes a column of vectors of the same name, in single precision. Columns that are not named are
dropped. Beside the output lies its privacy card.

Mechanisms: forward (any two texts; the default), angular (near texts hide each other), depth (one sentence of a long
text), word-laplace and word-gaussian (a vector for each word). 'tacit mechanisms NAME' explains one.

Example: tacit embed tickets.csv --column text --epsilon 10 -o vectors.parquet

Example: tacit embed tickets.csv --column text --epsilon 10 --randomize topic --labels a,b,c --label-epsilon 3 -o
vectors.parquet

Then: tacit train classify --vectors vectors.parquet --label-column topic -o model
"""


def embed(config: EmbedConfig, quiet: Quiet) -> None:
    if config.output is None:
        config = config.model_copy(update={"output": STANDARD_STREAM})
    if config.dry_run:
        show_plan(run(config))
        return
    started = time.monotonic()
    mechanism = config.build_mechanism()
    notices = Notices(mechanism, terminal.warn)
    with RewriteBar(shown=not quiet.quiet) as bar:
        result = run(
            config, bar.update, mechanism=mechanism, on_block=lambda originals, _: notices.add(originals),
            on_ledger=terminal.tell_if_new, command=shown_command("embed", shown_options(config)),
        )  # fmt: skip
    notices.finish()
    if not quiet.quiet:
        show_summary(result, time.monotonic() - started)
    terminal.warn_if_nominal(result.card)


command = command_for("embed", [EmbedConfig, Quiet], embed, help=HELP)
