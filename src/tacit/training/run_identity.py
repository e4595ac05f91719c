"""The description that tells one run from another, and the refusal to go on with something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from tacit.errors import BadInputError
from tacit.plugins import source_digest
from tacit.training.device_noise import generator_identity
from tacit.training.plan import TrainingPlan
from tacit.training.settings import TrainingSettings
from tacit.training.tasks import Row, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WITHOUT_INFLUENCE = ("physical", "checkpoint_every", "tensorboard", "gradient_checkpointing", "noise_generator")
"""Settings that a resumed run may change."""
LAYOUT = ("side", "constant")
"""What a run chooses by itself, from the model and the tokenizer."""


def what_is_done(
    task: Task, model: nn.Module, plan: TrainingPlan, settings: TrainingSettings, device: torch.device
) -> dict[str, object]:
    """The part of a description that says what is done with the rows: task, plan, settings and trained weights."""
    digest = source_digest(type(task))
    return {
        **({} if digest is None else {"code of the task": digest}),
        "plan": {**asdict(plan), "adjacency": plan.adjacency.value, "unit": plan.unit.value},
        "settings": {name: value for name, value in asdict(settings).items() if name not in WITHOUT_INFLUENCE},
        "generator of the noise": generator_identity(settings.noise_generator, device),
        "task": {name: value for name, value in task.settings().items() if name not in LAYOUT},
        "set of trained weights (strategy, rank, pooling)": {
            name: list(p.shape) for name, p in model.named_parameters() if p.requires_grad
        },
    }


def digest_of(rows: Sequence[Row]) -> str:
    """The digest of rows: other rows with the same noise would show their difference."""
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(json.dumps(dict(row), sort_keys=True).encode())
    return digest.hexdigest()


def digest_of_pieces(tokenizer: PreTrainedTokenizerBase) -> str:
    """A name of the pieces that a tokenizer knows."""
    known = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    return hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).hexdigest()


def refuse_another_run(kept: str, now: str, *, kind: str, folder: Path) -> None:
    """Refuse a folder whose run had other settings; both are described as JSON."""
    before, after = json.loads(kept), json.loads(now)
    for part in after:
        if before.get(part) != after[part]:
            raise BadInputError(
                "another-run",
                "the {kind} run in {folder} had another {part}: repeat its command, or start anew in another folder",
                kind=kind,
                folder=folder,
                part=part,
            )
