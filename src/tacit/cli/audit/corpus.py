"""`tacit audit corpus`: what a synthetic corpus gives away about the texts it was made from."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.corpus import CorpusAuditConfig, run

HELP = """Attack a synthetic corpus from its texts alone, as anybody could who downloads it.

Give the coins of canaries that were put into the private texts ('tacit audit canaries --like'), or members and
non-members. Two signals ask whether the corpus echoes a text, and a lower bound on epsilon stands beside the claim of
the card. Exit code 3 means that the claim was refuted.

Example: tacit audit corpus synthetic.csv --canaries coins.jsonl --html report.html
"""


def corpus(config: CorpusAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress))


command = command_for("corpus", [CorpusAuditConfig, AuditReportOptions], corpus, help=HELP)
