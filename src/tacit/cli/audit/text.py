"""`tacit audit text`: attack a released file with the original beside it."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.text import TextAuditConfig, run

HELP = """Attack a released text: invert words, guess them from context, find authors, attributes, entities, originals.

The report quotes the original text where an attack succeeded, so it is as private as the data. Exit code 3 means
that the release does not fit the mechanism that its card claims.

Example: tacit audit text reviews.csv private.csv --column text --author-column user --html audit.html
"""


def text(config: TextAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress, figures=shown.html is not None))


command = command_for("text", [TextAuditConfig, AuditReportOptions], text, help=HELP)
