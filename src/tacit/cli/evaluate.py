"""`tacit evaluate`: what released texts are still good for."""

from __future__ import annotations

from typing import Any

import click

from tacit.cli import evaluate_corpus
from tacit.cli.generated import SectionedCommand, command_for
from tacit.cli.reports import ReportOptions
from tacit.jobs.evaluate import EvaluateConfig, run

CORPUS = "corpus"
HELP = """Measure what is left of the utility of released texts.

How similar they are to the originals, and how well a model trained on them works on original text, always beside
the floor (chance) and the ceiling (the originals themselves). Several files give a trade-off with the privacy that
their cards promise.

A synthetic corpus, whose rows belong to no rows of the originals, has a command of its own: 'tacit evaluate corpus
--help'.

Example: tacit evaluate reviews.csv private.csv --label-column rating --html report.html

Example: tacit evaluate corpus tickets.csv synthetic.csv --label-column intent --test tickets-test.csv
"""


class EvaluateCommand(SectionedCommand):
    """The command for releases made row by row; 'corpus' as the first word leads to the one for synthetic corpora."""

    @property
    def commands(self) -> dict[str, click.Command]:
        return {CORPUS: evaluate_corpus.command}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.commands.get(name)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == [CORPUS]:
            return self.commands[CORPUS].make_context(f"{info_name} {CORPUS}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def evaluate(config: EvaluateConfig, shown: ReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress))


command = command_for("evaluate", [EvaluateConfig, ReportOptions], evaluate, help=HELP, kind=EvaluateCommand)
