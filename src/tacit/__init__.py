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

from typing import TYPE_CHECKING, Any

from tacit.version import __version__

if TYPE_CHECKING:  # what `__getattr__` finds, with its types
    from tacit.card import Card as Card
    from tacit.catalog import build as build
    from tacit.catalog import mechanism_names as mechanism_names
    from tacit.errors import TacitError as TacitError
    from tacit.guarantee import Adjacency as Adjacency
    from tacit.guarantee import Guarantee as Guarantee
    from tacit.guarantee import Notion as Notion
    from tacit.guarantee import Unit as Unit
    from tacit.jobs.answer import answer as answer
    from tacit.jobs.audit import (
        audit as audit,
    )
    from tacit.jobs.audit import (
        audit_corpus as audit_corpus,
    )
    from tacit.jobs.audit import (
        audit_mechanism as audit_mechanism,
    )
    from tacit.jobs.audit import (
        audit_model as audit_model,
    )
    from tacit.jobs.audit import (
        audit_synthetic as audit_synthetic,
    )
    from tacit.jobs.audit import (
        audit_text as audit_text,
    )
    from tacit.jobs.audit import (
        audit_vectors as audit_vectors,
    )
    from tacit.jobs.decode import decode as decode
    from tacit.jobs.embed import embed as embed
    from tacit.jobs.ensemble import train_ensemble as train_ensemble
    from tacit.jobs.evaluate import evaluate as evaluate
    from tacit.jobs.evaluate_corpus import evaluate_corpus as evaluate_corpus
    from tacit.jobs.federate import federate as federate
    from tacit.jobs.guide.advice import guide as guide
    from tacit.jobs.predict import predict as predict
    from tacit.jobs.predict_ensemble import predict_ensemble as predict_ensemble
    from tacit.jobs.registry import run as run
    from tacit.jobs.rewrite import rewrite as rewrite
    from tacit.jobs.sketch import sketch as sketch
    from tacit.jobs.synthesize import synthesize as synthesize
    from tacit.jobs.topics import topics as topics
    from tacit.jobs.train import train as train
    from tacit.labels import randomize_labels as randomize_labels
    from tacit.vectors import VectorTable as VectorTable
    from tacit.vectors import load_vectors as load_vectors

__all__ = [
    "Card",
    "Guarantee",
    "__version__",
    "answer",
    "audit",
    "build",
    "decode",
    "embed",
    "evaluate",
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
