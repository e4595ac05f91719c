"""Tacit: work with text you are not allowed to show. Rewriting under differential privacy, with the guarantee attached.

    import tacit
    mechanism = tacit.SanText(epsilon=2.0)
    release = mechanism.rewrite(["it 's a charming and often affecting journey ."])
    release.texts              # what may be shared
    print(release.guarantee)   # what was promised

    trained = tacit.train("classify", "reviews.csv", epsilon=3, output="model")
    tacit.predict("model", ["it is lovely"]).predictions

Mechanisms and heavy libraries load when they are first used.
"""

from __future__ import annotations

from typing import Any

from tacit.version import __version__

__all__ = [
    "Card",
    "Guarantee",
    "__version__",
    "answer",
    "build",
    "decode",
    "embed",
    "federate",
    "guide",
    "load_vectors",
    "mechanism_names",
    "predict",
    "rewrite",
    "run",
    "sketch",
    "synthesize",
    "topics",
    "train",
]

_LAZY = {
    "audit": "tacit.jobs.audit",
    "embed": "tacit.jobs.embed",
    "evaluate": "tacit.jobs.evaluate",
    "evaluate_corpus": "tacit.jobs.evaluate_corpus",
    "Guarantee": "tacit.guarantee",
    "Notion": "tacit.guarantee",
    "Unit": "tacit.guarantee",
    "Adjacency": "tacit.guarantee",
    "Card": "tacit.card",
    "build": "tacit.catalog",
    "mechanism_names": "tacit.catalog",
    "load_vectors": "tacit.vectors",
    "VectorTable": "tacit.vectors",
    "TacitError": "tacit.errors",
    "audit_corpus": "tacit.jobs.audit",
    "audit_mechanism": "tacit.jobs.audit",
    "audit_model": "tacit.jobs.audit",
    "audit_synthetic": "tacit.jobs.audit",
    "audit_text": "tacit.jobs.audit",
    "audit_vectors": "tacit.jobs.audit",
    "randomize_labels": "tacit.labels",
    "rewrite": "tacit.jobs.rewrite",
    "run": "tacit.jobs.registry",
    "train": "tacit.jobs.train",
    "federate": "tacit.jobs.federate",
    "predict": "tacit.jobs.predict",
    "train_ensemble": "tacit.jobs.ensemble",
    "predict_ensemble": "tacit.jobs.predict_ensemble",
    "guide": "tacit.jobs.guide.advice",
    "sketch": "tacit.jobs.sketch",
    "answer": "tacit.jobs.answer",
    "decode": "tacit.jobs.decode",
    "synthesize": "tacit.jobs.synthesize",
    "topics": "tacit.jobs.topics",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name[:1].isupper():
        from tacit.catalog import class_names

        mechanism = class_names().get(name)
        if mechanism is not None:
            return mechanism
    raise AttributeError(f"module 'tacit' has no attribute '{name}'")


def __dir__() -> list[str]:
    from tacit.catalog import class_names

    return sorted({*__all__, *_LAZY, *class_names()})
