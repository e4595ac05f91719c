"""`tacit topics`: what private texts are about."""

from __future__ import annotations

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card, show_report
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.jobs.topics import TopicsConfig, run

HELP = """Say what private texts are about: topics with noisy counts, their words, and public sentences near them.

Each text belongs to one of 1,024 public cells; all cells get a noisy count, near ones are joined to 20 to 100 topics,
and words that many texts of a topic share are shown. A page (.html) has a map of the topics; a table (.csv) and JSON
have the same numbers.

Example: tacit topics mails.csv --column text --epsilon 1 -o topics.html -o topics.csv

Example: tacit topics posts.csv --user-column author --epsilon 1 -o topics.html
"""


def topics(config: TopicsConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        made = run(config, bars.show)
    if not shown.quiet:
        report = made.report()
        show_report(type(report)(report.title, report.sections[:1]), output_console())
        show_card(made.card, output_console())
        for path in config.output:
            error_console().print(f"{len(made):,} topics -> {path}", markup=False)
    warn_if_nominal(made.card)


command = command_for("topics", [TopicsConfig, Quiet], topics, help=HELP)
