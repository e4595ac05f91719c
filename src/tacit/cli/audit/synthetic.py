"""`tacit audit synthetic`: attack a released sketch and corpora made like it."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.synthetic import SyntheticAuditConfig, run

HELP = """Attack a corpus made by 'tacit synthesize' and the sketch it was drawn from.

Four attacks can refute the card, each with its share of the stated false-alarm rate: the size of the noise in the
released sketch; hundreds of fresh sketches with and without a target row, told apart by the best possible test; one
sketch with many canaries whose coins are guessed; and fresh corpora with and without a target, for anything that did
not go through the sketch. With --corpus, the released sentences are also looked up in the private rows.

Exit code 3 means that the card is refuted. --planted makes releases with a known mistake, which must be refuted.

Example: tacit audit synthetic tickets.csv synthetic-sketch.tacit --label-column intent --corpus synthetic.csv

Example: tacit audit synthetic tickets.csv synthetic-sketch.tacit -l intent --planted half-sensitivity
"""


def synthetic(config: SyntheticAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress))


command = command_for("synthetic", [SyntheticAuditConfig, AuditReportOptions], synthetic, help=HELP)
