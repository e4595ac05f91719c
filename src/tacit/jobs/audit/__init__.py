"""Audits: of the claim of a mechanism, of a released text, of a synthetic corpus, of a trained model."""

from __future__ import annotations

from typing import Any

from tacit.jobs.audit.corpus import audit_corpus
from tacit.jobs.audit.mechanism import audit_mechanism
from tacit.jobs.audit.model import audit_model
from tacit.jobs.audit.synthetic import audit_synthetic
from tacit.jobs.audit.text import audit_text
from tacit.jobs.audit.vectors import audit_vectors
from tacit.report import Report

__all__ = ["audit", "audit_corpus", "audit_mechanism", "audit_model", "audit_synthetic", "audit_text", "audit_vectors"]


def audit(audited: Any = None, private: object = None, /, **options: Any) -> Report:
    """The report of the audit that fits what is given.

    audit(original, private)    attacks on a release, `audit_text`
    audit(model, members=…)     attacks on a trained model (also with canaries=…), `audit_model`
    audit(mechanism)            a check of its claim (also with matrix=… or callable=…), `audit_mechanism`

    >>> audit(matrix=[[0.75, 0.25], [0.25, 0.75]], epsilon=1.2).refuted
    False
    """
    if private is not None:
        return audit_text(audited, private, **options)
    if options.keys() & {"members", "non_members", "canaries"}:
        return audit_model(audited, **options)
    return audit_mechanism(audited, **options)
