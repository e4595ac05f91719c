"""A task of its own: classification under another name."""

from __future__ import annotations

from tacit.training.tasks import Classification


class Lines(Classification):
    name = "toy-lines"
