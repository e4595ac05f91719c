"""Per-example losses: what every attack on a model looks at.

    causal                 -sum_t ln p(x_t | x_<t); the first token counts only if the tokenizer puts one before it
    masked                 -sum_t ln p(x_t | the others), with every 7th token hidden at a time (the 15 % of BERT's
                           training; hiding one at a time is the pseudo-likelihood of Salazar et al., ACL 2020)
    sequence-to-sequence   -sum_t ln p(y_t | y_<t, x); y is the target, or the text itself
    classifier             -ln p(label | x), or without labels -ln of the largest probability; models of 'tacit train'
                           read texts as they did in training, and those that guess numbers have squared errors
    autoencoder            -sum_t ln p(x_t | x_<t, latent of x), without noise: models of 'tacit pretrain'
    any callable           texts in, one loss each out

Texts are put into batches of one length, so nothing is ever padded: a text has the same loss alone and in any company,
up to rounding. Texts longer than the model reads are cut; how many is reported.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError, BadParameterError, TacitError, require
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tacit.documents.autoencoders.base import Autoencoder

LONGEST = 1024
CELLS = 48_000_000
"""Tokens times vocabulary of one batch: 200 MB of logits."""

BATCH_TOKENS = 8_192
HIDDEN_STEP = 7


@dataclass(frozen=True)
class TextLosses:
    """Losses in nats of whole texts, the number of tokens they are sums over, and how many texts were cut.

    A text without any token to predict has `tokens` 0 and a mean that is not a number.
    """

    total: Floats
    tokens: Integers
    cut: int = 0

    @property
    def mean(self) -> Floats:
        """Loss per token."""
        means: Floats = np.divide(self.total, self.tokens, out=np.full(len(self.total), np.nan), where=self.tokens > 0)
        return means

    def take(self, places: Sequence[int] | Integers) -> TextLosses:
        return TextLosses(self.total[places], self.tokens[places])


class Scorer(ABC):
    """Texts (with labels or targets, where the model has them) to losses."""

    kind: ClassVar[str]
    name: str

    @abstractmethod
    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses: ...


# Hugging Face models ----------------------------------------------------------------------------------------------


class _ModelScorer(Scorer):
    """What the kinds share: tokens, batches of one length, sums."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        room: int | None = None,
        longest: int = LONGEST,
    ) -> None:
        self.torch = require("torch", extra="documents", purpose="scoring texts with a model")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.longest = min(longest, room) if room else longest

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        if labels is not None and len(labels) != len(texts):
            raise BadInputError(
                "wrong-number-of-labels",
                "there are {texts:,} texts and {labels:,} labels: each text needs one",
                texts=len(texts),
                labels=len(labels),
            )
        rows, cut = self._rows(texts)
        marks = self._marks(labels, len(texts))
        total, tokens = np.zeros(len(texts)), np.zeros(len(texts), dtype=np.int64)
        done = 0
        for places in _batches([(len(row), len(mark)) for row, mark in zip(rows, marks, strict=True)], self._width()):
            losses, counted = self._batch([rows[i] for i in places], [marks[i] for i in places])
            total[places], tokens[places] = losses, counted
            done += len(places)
            if progress:
                progress(done, len(texts))
        if not np.isfinite(total).all():
            raise BadInputError(
                "not-finite", "{name} gives losses that are no numbers: its weights are damaged", name=self.name
            )
        return TextLosses(total, tokens, cut)

    def _rows(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        # Longer texts are cut here, not by the tokenizer, so that they can be counted.
        pieces = [list(map(int, self.tokenizer(text, verbose=False)["input_ids"])) for text in clean]
        return [row[: self.longest] for row in pieces], sum(len(row) > self.longest for row in pieces)

    def _marks(self, labels: Sequence[str] | None, count: int) -> list[list[int]]:
        """The targets as tokens, or the label as its number."""
        return [[] for _ in range(count)]

    def _width(self) -> int:
        """Numbers that the model gives per token."""
        return int(self.model.get_output_embeddings().weight.shape[0])

    @abstractmethod
    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]: ...

    def _nll(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of each target, in double precision."""
        flat: Tensor = self.torch.nn.functional.cross_entropy(
            logits.flatten(0, -2).double(), targets.flatten(), reduction="none"
        )
        return flat.reshape(targets.shape)

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids: Tensor = self.torch.tensor(rows, dtype=self.torch.long)
        return ids


class CausalScorer(_ModelScorer):
    kind = "causal language model"

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids = self._tensor(rows)
        if ids.shape[1] < 2:
            return 0.0, 0
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=self.torch.ones_like(ids)).logits
            losses = self._nll(logits[:, :-1], ids[:, 1:]).sum(dim=1)
        return losses.numpy(), ids.shape[1] - 1


class MaskedScorer(_ModelScorer):
    kind = "masked language model"

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids = self._tensor(rows)
        special = self._tensor(
            [self.tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True) for row in rows]
        ).bool()
        total = np.zeros(len(rows))
        positions = self.torch.arange(ids.shape[1])
        for offset in range(min(HIDDEN_STEP, ids.shape[1])):
            hidden = (positions % HIDDEN_STEP == offset)[None] & ~special
            if not hidden.any():
                continue
            masked = self.torch.where(hidden, self.tokenizer.mask_token_id, ids)
            with self.torch.inference_mode():
                logits = self.model(input_ids=masked, attention_mask=self.torch.ones_like(ids)).logits
                total += (self._nll(logits, ids) * hidden).sum(dim=1).numpy()
        return total, (~special).sum(dim=1).numpy()


class Seq2SeqScorer(_ModelScorer):
    kind = "sequence-to-sequence model"

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        return super().losses(texts, texts if labels is None else labels, progress)

    def _marks(self, labels: Sequence[str] | None, count: int) -> list[list[int]]:
        return self._rows(labels or [])[0]

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids, targets = self._tensor(rows), self._tensor(marks)
        if not targets.shape[1] or not ids.shape[1]:
            return 0.0, 0
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=self.torch.ones_like(ids), labels=targets).logits
            losses = self._nll(logits, targets).sum(dim=1)
        return losses.numpy(), targets.shape[1]


class ClassifierScorer(_ModelScorer):
    """One loss per text, so `tokens` is 1."""

    kind = "classifier"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        room: int | None = None,
        longest: int = LONGEST,
    ) -> None:
        super().__init__(model, tokenizer, name, room, longest)
        if model.config.pad_token_id is None:
            model.config.pad_token_id = -1  # decoders look for the last token that is none; here every one counts

    def _marks(self, labels: Sequence[str] | None, count: int) -> list[list[int]]:
        if labels is None:
            return [[] for _ in range(count)]
        numbers = {str(name): int(number) for name, number in (self.model.config.label2id or {}).items()}
        numbers |= {str(number): number for number in range(self.model.config.num_labels)}
        for row, label in enumerate(labels, start=1):
            if str(label) not in numbers:
                raise BadInputError(
                    "unknown-label",
                    "row {row} has a label that {name} does not know: its labels are {known}",
                    row=row,
                    name=self.name,
                    known=", ".join(sorted(numbers)[:10]),
                )
        return [[numbers[str(label)]] for label in labels]

    def _width(self) -> int:
        return 1

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids = self._tensor(rows)
        if not ids.shape[1]:
            return 0.0, 0
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=self.torch.ones_like(ids)).logits.double()
            scores = logits.log_softmax(dim=-1)
            if marks[0]:
                return -scores.gather(1, self._tensor(marks))[:, 0].numpy(), 1
            return -scores.max(dim=1).values.numpy(), 1


def _batches(lengths: Sequence[tuple[int, int]], width: int) -> Iterator[list[int]]:
    """Places of texts of one length (and one length of targets) together, short ones first."""
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    start = 0
    while start < len(order):
        length = lengths[order[start]]
        size = max(1, max(length))
        limit = max(1, min(BATCH_TOKENS // size, CELLS // (size * max(1, width))))
        end = start
        while end < len(order) and end - start < limit and lengths[order[end]] == length:
            end += 1
        yield order[start:end]
        start = end


# Others -----------------------------------------------------------------------------------------------------------


class AutoencoderScorer(Scorer):
    """A model of 'tacit pretrain': the loss of a text given its own latent, bounded as at release, without noise."""

    kind = "autoencoder"

    def __init__(self, autoencoder: Autoencoder, name: str) -> None:
        self.torch = require("torch", extra="documents", purpose="scoring texts with a model")
        self.autoencoder = autoencoder
        self.name = name

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        model, torch = self.autoencoder, self.torch
        model.module.eval()
        bound = model.record.trained_bound()
        total, tokens = np.zeros(len(texts)), np.zeros(len(texts), dtype=np.int64)
        for start in range(0, len(texts), 64):
            part = texts[start : start + 64]
            latents = model.encode(part)
            bounded = latents if bound is None else bound.apply(latents)
            ids = torch.from_numpy(model.ids(part))
            counted = ids != model.padding_id
            with torch.inference_mode():
                states = model.states(torch.from_numpy(np.asarray(bounded, dtype=np.float32)), ids)
                losses = torch.nn.functional.cross_entropy(
                    model.scores(states[counted]).double(), ids[counted], reduction="none"
                )
            rows = counted.nonzero()[:, 0].numpy()
            total[start : start + len(part)] = np.bincount(rows, losses.numpy(), minlength=len(part))
            tokens[start : start + len(part)] = counted.sum(dim=1).numpy()
            if progress:
                progress(start + len(part), len(texts))
        return TextLosses(total, tokens)


class CallableScorer(Scorer):
    """Any function from texts to one loss each."""

    kind = "function"

    def __init__(self, function: Callable[[Sequence[str]], ArrayLike], name: str = "function") -> None:
        self.function = function
        self.name = name

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        try:
            losses = np.asarray(self.function(list(texts)), dtype=np.float64)
        except TacitError:
            raise
        except Exception as error:
            raise BadInputError(
                "function-failed",
                "the function {name} failed ({error}): it takes a list of texts and returns one loss for each",
                name=self.name,
                error=type(error).__name__,
            ) from error
        if losses.shape != (len(texts),) or not np.isfinite(losses).all():
            raise BadInputError(
                "not-finite",
                "the function {name} must return {texts:,} finite numbers, one loss for each text",
                name=self.name,
                texts=len(texts),
            )
        return TextLosses(losses, np.ones(len(texts), dtype=np.int64))


# Loading ----------------------------------------------------------------------------------------------------------


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
    from tacit.documents.autoencoders.base import RECORD_FILE, built_in_folder, load_autoencoder
    from tacit.documents.language_models import CausalModel, MaskedModel, load_language_model

    folder = Path(model).expanduser()
    if built_in_folder(str(model)) is not None or (folder / RECORD_FILE).is_file():
        return AutoencoderScorer(load_autoencoder(model), folder.name)
    architecture = _saved_architecture(folder)
    if architecture.endswith("ForSequenceClassification"):
        from tacit.auditing.models.trained import trained_scorer

        made_here = trained_scorer(folder)
        return ClassifierScorer(*_classifier(folder), longest=longest) if made_here is None else made_here
    if architecture and not architecture.endswith(_SCORED):
        raise BadInputError(
            "model-without-loss",
            "the folder {folder} holds a {architecture}, for which there is no loss of a text: give a model saved "
            "as ...ForCausalLM, ...LMHeadModel, ...ForMaskedLM, ...ForConditionalGeneration or "
            "...ForSequenceClassification",
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


_SCORED = ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "ForConditionalGeneration")


def _saved_architecture(folder: Path) -> str:
    """What a folder says it holds; nothing for hub names and for folders without a configuration."""
    try:
        architectures = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("architectures")
    except (OSError, ValueError, AttributeError):
        return ""
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _classifier(folder: Path) -> tuple[Any, Any, str, int | None]:
    transformers = require("transformers", extra="documents", purpose="auditing a model")
    torch = require("torch", extra="documents", purpose="auditing a model")
    if not [p for n in ("tokenizer*", "vocab*", "spiece*", "sentencepiece*") for p in folder.glob(n)]:
        raise BadInputError(
            "no-tokenizer",
            "the folder {folder} has no tokenizer (tokenizer.json or vocabulary files): save it beside the model",
            folder=folder.name,
        )
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
    config = model.config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    reserved = 2 if "roberta" in config.model_type or config.model_type == "camembert" else 0
    known = [int(limit) - reserved for limit in limits if limit]
    return model, tokenizer, folder.name, min(known) if known else None
