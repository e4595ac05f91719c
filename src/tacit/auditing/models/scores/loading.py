"""The scorer of a folder, a hub name, a model that comes with Tacit, or a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tacit.auditing.models.scores.losses import CallableScorer, Scorer
from tacit.auditing.models.scores.networks import (
    LONGEST,
    AutoencoderScorer,
    CausalScorer,
    ClassifierScorer,
    MaskedScorer,
    Seq2SeqScorer,
)
from tacit.devices import chosen_device
from tacit.documents.autoencoders.base import load_autoencoder
from tacit.documents.autoencoders.built_in import RECORD_FILE, built_in_folder
from tacit.documents.language_models import CausalModel, MaskedModel, load_language_model
from tacit.documents.language_models.loading import check_tokenizer_files
from tacit.errors import BadInputError, BadParameterError, require

ScoredModel = str | Path | Scorer | Callable[[Sequence[str]], ArrayLike]
"""A folder, a hub name, a model that comes with Tacit, or a function from texts to losses."""


def load_scorer(model: ScoredModel, *, longest: int = LONGEST) -> Scorer:
    """A scorer for a folder, a hub name, a model that comes with Tacit, or a function."""
    if isinstance(model, Scorer):
        return model
    if callable(model):
        return CallableScorer(model, getattr(model, "__name__", "function"))
    if not isinstance(model, str | Path):
        raise BadParameterError(
            "not-a-model", "a model is a folder, a name or a function, not a {given}", given=type(model).__name__
        )
    for library in ("torch", "transformers"):
        require(library, extra="documents", purpose="auditing a model")

    folder = Path(model).expanduser()
    if built_in_folder(str(model)) is not None or (folder / RECORD_FILE).is_file():
        return AutoencoderScorer(load_autoencoder(model), folder.name)
    from tacit.auditing.models.trained import check_auditable, trained_scorer

    check_auditable(folder)
    if (folder / SYNTHESIS).is_file():
        from tacit.auditing.models.writers import WriterScorer

        return WriterScorer(folder, longest)
    made_here = trained_scorer(folder)
    if made_here is not None:
        return made_here
    architecture = _saved_architecture(folder)
    if architecture.endswith("ForSequenceClassification"):
        return ClassifierScorer(*_classifier(folder), longest=longest)
    if architecture and not architecture.endswith(_SCORED):
        raise BadInputError(
            "model-without-loss",
            "the folder {folder} holds a {architecture}, for which there is no loss of a text: give a model saved "
            "as ...ForCausalLM, ...LMHeadModel, ...ForMaskedLM, ...ForConditionalGeneration or "
            "...ForSequenceClassification, or a folder that 'tacit train' has made",
            folder=folder.name,
            architecture=architecture,
        )
    loaded = load_language_model(model)
    kind = (
        CausalScorer if isinstance(loaded, CausalModel)
        else MaskedScorer if isinstance(loaded, MaskedModel)
        else Seq2SeqScorer
    )  # fmt: skip
    return kind(loaded.model, loaded.tokenizer, loaded.name, loaded.room, longest)


SYNTHESIS = "synthesis.json"
"""The file that marks the folder of a model that 'tacit synthesize' trains to write."""

_SCORED = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "ForConditionalGeneration")


def _saved_architecture(folder: Path) -> str:
    """The architecture that a folder says it holds; nothing for hub names and for folders without a configuration."""
    try:
        architectures = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("architectures")
    except (OSError, ValueError, AttributeError):
        return ""
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _classifier(folder: Path) -> tuple[Any, Any, str, int | None]:
    transformers = require("transformers", extra="documents", purpose="auditing a model")
    torch = require("torch", extra="documents", purpose="auditing a model")
    check_tokenizer_files(folder)
    from tacit.documents.autoencoders.bart import quiet
    from tacit.training.models import know_our_networks

    know_our_networks(str(folder))
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
            model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
                str(folder), dtype=torch.float32, output_loading_info=True, trust_remote_code=False
            )
    except Exception as error:  # safetensors, pickle and shape errors have no common class
        raise BadInputError(
            "unreadable-model",
            "the classifier in {folder} cannot be read ({error}): copy the whole folder again (config.json, "
            "weights, tokenizer files)",
            folder=folder.name,
            error=type(error).__name__,
        ) from error
    if report["missing_keys"]:
        raise BadInputError(
            "incomplete-weights",
            "{folder} lacks {missing} of the weights of a {type}: random ones would say nothing about its training "
            "data; give a model that was saved whole",
            folder=folder.name,
            missing=len(report["missing_keys"]),
            type=type(model).__name__,
        )
    model.to(chosen_device())
    config = model.config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    reserved = 2 if "roberta" in config.model_type or config.model_type == "camembert" else 0
    known = [int(limit) - reserved for limit in limits if limit]
    return model, tokenizer, folder.name, min(known) if known else None
