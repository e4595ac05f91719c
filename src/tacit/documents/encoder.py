"""Sentence encoder: a public function from a text of any length to one unit vector.

    f(x) = m / |m|,   m = the mean of the last hidden states over the word pieces of x

(Reimers & Gurevych, EMNLP 2019). The rules that make it a function of the text alone:

* A text is read up to its first `LONGEST_CHARACTERS` characters, and of these the first `pieces` word pieces count. The
  rest of a long text is ignored: a stated rule, so that a text of 100,000 words costs no more than one of 200.
* Texts are grouped by length, so that little padding is computed; padded positions are masked out. The vector of a text
  depends on the other texts of its batch by rounding errors only: below `BATCH_ERROR` in each coordinate, because
  weights are loaded and multiplied with 32 bits however they were saved; `tacit.documents.apart` measures it before a
  release. `encode_alone` computes a text in a batch of its own, and decides where such an error could matter.
* A text without any word piece (empty, or only white space) gets the vector of the special pieces alone, as the model
  gives it: fixed, and of length 1 like every other.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats32
from tacit.devices import chosen_device, computing_on, device_in_use, device_of
from tacit.encoders import ENCODERS, Encoder, encoder_provenance, load_encoder
from tacit.errors import BadInputError, BadParameterError, TacitError, require
from tacit.guarantee import Provenance
from tacit.precision import Precision, in_sixteen_bits
from tacit.progress import StepProgress
from tacit.vectors.minilm import minilm_folder

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LONGEST_CHARACTERS = 20_000
BATCH_ERROR = 1e-6
"""A bound on how far a coordinate of a text's vector can move with the batch it is computed in."""
BATCH_PIECES = 1_600
"""Pieces computed together, padding included: larger batches leave the cache of one core and are slower."""

PURPOSE = "the sentence encoder"

__all__ = ["ENCODERS", "Encoder", "SentenceEncoder", "encoder_provenance", "load_encoder"]


class SentenceEncoder:
    """Mean-pooled, normalized vectors of a Hugging Face encoder.

    name         "minilm" (all-MiniLM-L6-v2, from an installed package), a folder, or a name on the model hub
    batch_size   texts computed together, at most; no influence on the vectors beyond rounding
    pieces       how many word pieces of a text count, with the two special ones
    precision    "float32", or "fast": 16 bits (bfloat16) where the processor computes with them, which takes half the
                 time and moves a coordinate by some thousandths. Not for a release: there, vectors decide about privacy
    """

    def __init__(
        self, name: str | Path = "minilm", *, batch_size: int = 64, pieces: int = 256, precision: Precision = "float32"
    ) -> None:
        if batch_size < 1:
            raise BadParameterError("impossible-count", "batch_size must be at least 1, not {count}", count=batch_size)
        if pieces < 3:
            raise BadParameterError(
                "impossible-length",
                "an encoder must read at least 3 word pieces of a text, not {pieces}",
                pieces=pieces,
            )
        self.name = str(name)
        self.batch_size = batch_size
        self.pieces = pieces
        self.precision = precision
        self._device = device_in_use()
        self._loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None

    @property
    def dimension(self) -> int:
        return int(self._model()[1].config.hidden_size)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer, for uses that need more than one vector per text."""
        return self._model()[0]

    @property
    def model(self) -> PreTrainedModel:
        """The network itself, shared by all encoders of this name: copy it before training it."""
        return self._model()[1]

    def provenance(self) -> Provenance:
        """The line of a card that uses the encoder; refused if it may repeat private text."""
        return encoder_provenance(self.name)

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        """Unit vectors (texts, dimension), float32, in the order of the texts."""
        tokenizer, model = self._model()
        pieces = self._pieces(tokenizer, texts)
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        vectors = np.empty((len(pieces), self.dimension), dtype=np.float32)
        done = 0
        for batch in _batches(order, [len(ids) for ids in pieces], self.batch_size):
            vectors[batch] = _pooled(model, [pieces[i] for i in batch], tokenizer.pad_token_id or 0)
            done += len(batch)
            if progress is not None:
                progress(done, len(order))
        return vectors

    def encode_alone(self, text: str) -> Floats32:
        """The vector of one text, computed without any other: on one machine, a function of the text alone."""
        tokenizer, model = self._model()
        return np.asarray(_pooled(model, self._pieces(tokenizer, [text]), tokenizer.pad_token_id or 0)[0])

    def _pieces(self, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
        if not len(texts):
            return []
        cut = [text[:LONGEST_CHARACTERS] for text in texts]
        # The model may have fewer positions than the text has pieces.
        longest = min(self.pieces, int(getattr(self._model()[1].config, "max_position_embeddings", self.pieces)))
        pieces: list[list[int]] = tokenizer(
            cut, truncation=True, max_length=longest, padding=False, return_attention_mask=False, verbose=False
        )["input_ids"]
        fallback = tokenizer.pad_token_id or 0
        return [ids or [fallback] for ids in pieces]

    def _model(self) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        if self._loaded is None:
            with computing_on(self._device):
                device = chosen_device()
            tokenizer, model = _load(self.name, device)
            small = in_sixteen_bits(self.precision, device.type)
            self._loaded = tokenizer, (_smaller(self.name, device) if small else model)
        return self._loaded


def _batches(order: Sequence[int], lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Texts from short to long, at most so many together, and no more pieces than a processor keeps at hand."""
    batch: list[int] = []
    for text in order:
        if len(batch) == most or (batch and (len(batch) + 1) * lengths[text] > BATCH_PIECES):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _pooled(model: PreTrainedModel, pieces: Sequence[Sequence[int]], padding: int) -> Floats32:
    import torch

    longest = max(len(ids) for ids in pieces)
    inputs = torch.full((len(pieces), longest), padding, dtype=torch.long)
    mask = torch.zeros((len(pieces), longest), dtype=torch.long)
    for row, ids in enumerate(pieces):
        inputs[row, : len(ids)] = torch.tensor(ids, dtype=torch.long)
        mask[row, : len(ids)] = 1
    inputs, mask = inputs.to(device_of(model)), mask.to(device_of(model))
    with torch.inference_mode():
        states = model(input_ids=inputs, attention_mask=mask).last_hidden_state.float()
        weights = mask.unsqueeze(-1).float()
        mean = (states * weights).sum(1) / weights.sum(1)
        unit = torch.nn.functional.normalize(mean, dim=1)
    result: Floats32 = unit.cpu().numpy().astype(np.float32, copy=False)
    return result


# Loading ----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _load(name: str, device: torch.device) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    torch = require("torch", extra="documents", purpose=PURPOSE)
    transformers = require("transformers", extra="documents", purpose=PURPOSE)
    place: str | Path = minilm_folder() if name == "minilm" else name
    folder = Path(place).expanduser()
    local = folder.is_dir()
    if local:
        _check_folder(folder, name)
    elif isinstance(place, Path) or (os.sep in name and name.count("/") != 1) or folder.exists():
        raise BadInputError(
            "no-such-model",
            "there is no folder with an encoder at '{name}': give a folder, a hub name, or 'minilm'",
            name=name,
        )
    where = str(folder) if local else name
    with _quiet(transformers):
        try:
            local_only = local or offline()
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                where, local_files_only=local_only, trust_remote_code=False
            )
            # Not as it was saved: with 16 bits the vector of a text would depend on the texts beside it.
            model = transformers.AutoModel.from_pretrained(
                where, local_files_only=local_only, trust_remote_code=False, dtype=torch.float32
            )
        except TacitError:
            raise
        except Exception as error:
            raise _cannot_load(name, local) from error
    if getattr(model.config, "is_encoder_decoder", False) or not hasattr(model.config, "hidden_size"):
        raise BadInputError(
            "wrong-kind-of-model",
            "'{name}' is a {model_type} model, not a sentence encoder: give an encoder of the BERT kind, such as "
            "'minilm'",
            name=name,
            model_type=model.config.model_type,
        )
    model.eval()
    model.to(device)
    return tokenizer, model


@lru_cache(maxsize=1)
def _smaller(name: str, device: torch.device) -> PreTrainedModel:
    import torch

    smaller: PreTrainedModel = copy.deepcopy(_load(name, device)[1]).to(torch.bfloat16)  # type: ignore[arg-type]
    return smaller


def _check_folder(folder: Path, name: str) -> None:
    settings = folder / "config.json"
    if not settings.is_file():
        raise BadInputError(
            "no-such-model",
            "the folder '{name}' has no config.json: give a folder in the Hugging Face layout",
            name=name,
        )
    try:
        json.loads(settings.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        raise BadInputError(
            "damaged-model", "config.json in '{name}' cannot be read: copy the folder again", name=name
        ) from None
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        raise BadInputError(
            "no-weights",
            "the folder '{name}' has no weights (*.safetensors): copy them from where the configuration came from",
            name=name,
        )


def offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "0").lower() not in ("", "0", "false", "no")


def _cannot_load(name: str, local: bool) -> BadInputError:
    if local:
        return BadInputError(
            "unreadable-model",
            "the encoder in '{name}' cannot be loaded: its weights, tokenizer and config.json must belong to one "
            "model that this version of transformers knows",
            name=name,
        )
    way = "HF_HUB_OFFLINE is set, so it is not downloaded" if offline() else "it could not be downloaded"
    return BadInputError(
        "no-such-model",
        "the encoder '{name}' is not on this machine and {way}: check the name and the network, give a folder with "
        "the model's files, or use 'minilm'",
        name=name,
        way=way,
    )


@contextlib.contextmanager
def _quiet(transformers: ModuleType) -> Any:
    """No progress bars and warnings of the loader: what matters is an error here."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled() if hasattr(logging, "is_progress_bar_enabled") else True
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
