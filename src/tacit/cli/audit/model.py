"""`tacit audit model`: what a trained model gives away about its training texts."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.model import ModelAuditConfig, run

HELP = """Attack a trained model: membership, canaries, extraction, and a lower bound on epsilon beside the claimed one.

Works for causal, masked and sequence-to-sequence language models, classifiers, and models of 'tacit pretrain'.
Exit code 3 means that the claimed epsilon was refuted.

Example: tacit audit model model/ --members train.csv --non-members held-out.csv --split random --html report.html
"""


def model(config: ModelAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress, figures=shown.html is not None))


command = command_for("model", [ModelAuditConfig, AuditReportOptions], model, help=HELP)
