"""`tacit audit vectors`: attack released vectors with the original texts beside them."""

from __future__ import annotations

from tacit.cli.generated import command_for
from tacit.cli.reports import AuditReportOptions
from tacit.jobs.audit.vectors import VectorAuditConfig, run

HELP = """Attack released vectors: find the words, the attributes and the original of each of them.

Every attack stands between a floor (a guess without the vector) and a ceiling (the same attack on vectors without
noise). The report quotes the original text where an attack succeeded, so it is as private as the data. Exit code 3
means that the noise is smaller than the card claims.

Example: tacit audit vectors tickets.csv vectors.parquet --column text --attribute-column topic --html audit.html
"""


def vectors(config: VectorAuditConfig, shown: AuditReportOptions) -> None:
    shown.show_job(lambda progress: run(config, progress))


command = command_for("vectors", [VectorAuditConfig, AuditReportOptions], vectors, help=HELP)
