"""`tacit evaluate corpus`: how good a synthetic corpus is in place of the originals."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import ReportOptions
from tacit.jobs.evaluate_corpus import CorpusConfig, run

HELP = """Judge a synthetic corpus: learners trained on it and tested on originals, the distance of the clouds of
vectors, proportions of labels, repeated rows, fluency, and names and numbers of private rows that it repeats.

The worst of several unrelated learners counts. Everything stands beside the originals, beside what needs no private
row, and beside chance. Give originals that the corpus was not made of with --test.

The report reads the private rows without any noise: it is private, and no card covers it.

Example: tacit evaluate corpus tickets.csv synthetic.csv --label-column intent --test tickets-test.csv

Example: tacit evaluate corpus tickets.csv synthetic.csv -l intent --test others.csv --learners words,letters,minilm
"""


def corpus(config: CorpusConfig, shown: ReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress, figures=shown.html is not None))


command = command_for("corpus", [CorpusConfig, ReportOptions], corpus, help=HELP)
