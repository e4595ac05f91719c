"""`tacit audit`: is a promise true, and what do a release or a model give away?"""

from __future__ import annotations

from tacit.cli.audit import canaries, corpus, mechanism, model, synthetic, text, vectors
from tacit.cli.generated import group_of

command = group_of(
    "audit",
    [
        mechanism.command,
        text.command,
        vectors.command,
        model.command,
        synthetic.command,
        corpus.command,
        canaries.command,
    ],
    help="Check a privacy claim, or attack a released file, a synthetic corpus or a trained model.",
)
