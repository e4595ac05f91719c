"""The folder of a training on public text: whether it is finished, and how a model is measured and saved in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tacit.documents.autoencoders.base import Autoencoder, load_autoencoder
from tacit.documents.autoencoders.built_in import RECORD_FILE
from tacit.documents.dp_bart import estimate_clip
from tacit.documents.pretraining.corpus import PublicText
from tacit.errors import BadInputError

CHECKPOINT = "checkpoint.pt"
BLEU = "held_out_bleu_without_noise"


@dataclass(frozen=True)
class Saving:
    """The way a finished model is saved and measured.

    held_out    texts to measure on
    join        whether joined texts are measured as well
    lowercase   whether capitals count for BLEU
    """

    held_out: int
    join: bool = False
    lowercase: bool = False
    half: bool = False
    eight_bits: bool = False


def is_complete(folder: Path, *, resume: bool) -> bool:
    """Whether there is nothing left to do. What somebody has trained is never overwritten."""
    stopped = (folder / CHECKPOINT).exists()
    if (folder / RECORD_FILE).exists() and not stopped and not _is_unmeasured(folder):
        if resume:
            return True
        raise BadInputError(
            "folder-holds-model",
            "'{folder}' holds a model: choose another folder with {option.output}, or delete it first",
            folder=folder,
        )
    if (stopped or any(folder.glob("stage-*"))) and not resume:
        raise BadInputError(
            "unfinished-training",
            "an unfinished training is in '{folder}': add {option.resume} to go on, or delete the folder",
            folder=folder,
        )
    return False


def _is_unmeasured(folder: Path) -> bool:
    """Whether a pruning was stopped after its last stage, with weights that are saved and not yet measured."""
    record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
    return any(folder.glob("stage-*")) and "bleu_lowercase" not in record.get("results", {})


def save_measured(
    model: Autoencoder, corpus: PublicText, folder: Path, saving: Saving, facts: dict[str, object]
) -> float:
    """BLEU of the model on held-out texts, without noise: it is measured, saved, and only then loses its checkpoint."""
    from tacit.documents.pretraining.measures import held_out_bleu

    model.save_pretrained(folder, half=saving.half, eight_bits=saving.eight_bits)
    saved = load_autoencoder(folder)  # measured as it will be used, in 16 or 8 bits if so saved
    measured = held_out_bleu(saved, corpus, saving.held_out, join=saving.join, lowercase=saving.lowercase)
    saved.record.results = {**facts, **measured, "bleu_lowercase": saving.lowercase}
    saved.record.write(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return measured[BLEU]


def measure_values(model: Autoencoder, corpus: PublicText) -> None:
    """Record how large the values of a model are that was trained without a bound: C can be chosen by it later."""
    model.record.sigma = None
    if model.kind in ("bart", "adept") and model.record.bound is None:
        model.record.sigma = round(estimate_clip(model, corpus).sigma, 4)
