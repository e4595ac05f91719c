"""`tacit audit mechanism`: hold a privacy claim against the law or the samples of a mechanism."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.mechanism import MechanismAuditConfig, run

HELP = """Check a privacy claim: exactly where the law is known, from samples where it is not.

Works for every word mechanism, the codebook, the latent mechanisms, and for a matrix or a function that somebody
else wrote. Exit code 3 means that the claim was refuted, or that --fail-on says so; the report names the inputs and
the output that show it.

Example: tacit audit mechanism santext --epsilon 2 --html audit.html
"""


def mechanism(config: MechanismAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress, figures=shown.html is not None))


command = command_for("mechanism", [MechanismAuditConfig, AuditReportOptions], mechanism, help=HELP)
