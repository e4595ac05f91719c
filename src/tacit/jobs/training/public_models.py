"""The public models that trainings start from. Loads the libraries of neural models."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit.documents.language_models import CausalModel, load_causal, load_generator
from tacit.training.models import load_model
from tacit.training.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SMOLLM2 = "smollm2"


def load_public(task: Task, name: str, warn: Callable[[str], None]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A public model for a task and its tokenizer; 'smollm2', which only writes, comes from its package."""
    if name != SMOLLM2:
        return load_model(task, name, warn=warn)
    generator = load_generator(name)
    return copy.deepcopy(generator.model), generator.tokenizer


def load_member(name: str) -> CausalModel:
    """The public causal model of an ensemble by its name or folder, refused if nothing can be promised with it."""
    generator = load_causal(name, "an ensemble")
    generator.provenance()
    return generator
