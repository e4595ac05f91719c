"""Scorers of Hugging Face models and of autoencoders."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.auditing.models.scores.losses import Scorer, TextLosses, check_paired, finite_losses
from tacit.devices import device_of, in_double
from tacit.errors import BadInputError, require
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from tacit.documents.autoencoders.base import Autoencoder

LONGEST = 1024
CELLS = 48_000_000
"""Tokens times vocabulary of one batch: 200 MB of logits."""
BATCH_TOKENS = 8_192
HIDDEN_STEP = 7


CLASSIFIER: Final = "classifier"


class _ModelScorer(Scorer):
    """A model that scores texts, with what the kinds share: tokens, batches of one length, sums."""

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
        self._prepare()

    def _prepare(self) -> None:
        """Changes of the model that its kind needs before it scores."""

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        check_paired(texts, labels)
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
        return TextLosses(finite_losses(total, self.name), tokens, cut)

    def _rows(self, texts: Sequence[str]) -> tuple[list[list[int]], int]:
        clean = [clean_text(text) for text in texts]
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
        exact = in_double(logits)
        flat: Tensor = self.torch.nn.functional.cross_entropy(
            exact.flatten(0, -2), targets.to(exact.device).flatten(), reduction="none"
        )
        return flat.reshape(targets.shape)

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids: Tensor = self.torch.tensor(rows, dtype=self.torch.long).to(device_of(self.model))
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
        return losses.cpu().numpy(), ids.shape[1] - 1

    def predictions(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Places of texts of one length, what the model predicts for each of their tokens but the first, and those."""
        rows, _ = self._rows(texts)
        for places in _batches([(len(row), 0) for row in rows], self._width()):
            ids = self._tensor([rows[i] for i in places])
            if ids.shape[1] < 2:
                yield places, ids[:, :0].cpu(), ids[:, :0].cpu()
                continue
            with self.torch.inference_mode():
                logits = self.model(input_ids=ids, attention_mask=self.torch.ones_like(ids)).logits
            yield places, logits[:, :-1].cpu(), ids[:, 1:].cpu()


class MaskedScorer(_ModelScorer):
    kind = "masked language model"

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids = self._tensor(rows)
        special = self._tensor(
            [self.tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True) for row in rows]
        ).bool()
        total = np.zeros(len(rows))
        positions = self.torch.arange(ids.shape[1], device=ids.device)
        for offset in range(min(HIDDEN_STEP, ids.shape[1])):
            hidden = (positions % HIDDEN_STEP == offset)[None] & ~special
            if not hidden.any():
                continue
            masked = self.torch.where(hidden, self.tokenizer.mask_token_id, ids)
            with self.torch.inference_mode():
                logits = self.model(input_ids=masked, attention_mask=self.torch.ones_like(ids)).logits
                total += (self._nll(logits, ids).cpu() * hidden.cpu()).sum(dim=1).numpy()
        return total, (~special).sum(dim=1).cpu().numpy()


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
        return losses.cpu().numpy(), targets.shape[1]


class ClassifierScorer(_ModelScorer):
    """One loss per text, so `tokens` is 1."""

    kind = CLASSIFIER
    of_language: ClassVar[bool] = False

    def _prepare(self) -> None:
        if self.model.config.pad_token_id is None:
            self.model.config.pad_token_id = -1  # decoders look for the last token that is none; here every one counts

    def _marks(self, labels: Sequence[str] | None, count: int) -> list[list[int]]:
        if labels is None:
            return [[] for _ in range(count)]
        return [[number] for number in class_numbers(self.model.config, labels, self.name)]

    def _width(self) -> int:
        return 1

    def _batch(self, rows: list[list[int]], marks: list[list[int]]) -> tuple[Floats | float, Integers | int]:
        ids = self._tensor(rows)
        if not ids.shape[1]:
            return 0.0, 0
        with self.torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=self.torch.ones_like(ids)).logits.cpu().double()
            scores = logits.log_softmax(dim=-1)
            if marks[0]:
                return -scores.gather(1, self._tensor(marks).cpu())[:, 0].numpy(), 1
            return -scores.max(dim=1).values.numpy(), 1


def clean_text(text: str) -> str:
    """A text that can be written as UTF-8: tokenizers take no others."""
    return text.encode("utf-8", "replace").decode("utf-8")


def class_numbers(config: PretrainedConfig, labels: Sequence[str], name: str) -> list[int]:
    """The numbers of labels in the model of this name; labels that it does not know are refused."""
    numbers = {str(label): int(number) for label, number in (config.label2id or {}).items()}
    numbers |= {str(number): number for number in range(int(config.num_labels or 0))}
    for row, label in enumerate(labels, start=1):
        if str(label) not in numbers:
            raise BadInputError(
                "unknown-label",
                "row {row} has a label that {name} does not know: its labels are {known}",
                row=row,
                name=name,
                known=", ".join(sorted(numbers)[:10]),
            )
    return [numbers[str(label)] for label in labels]


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
            device = device_of(model.module)
            ids = torch.from_numpy(model.ids(part)).to(device)
            counted = ids != model.padding_id
            with torch.inference_mode():
                states = model.states(torch.from_numpy(np.asarray(bounded, dtype=np.float32)).to(device), ids)
                scores = in_double(model.scores(states[counted]))
                targets = ids[counted].to(scores.device)
                losses = torch.nn.functional.cross_entropy(scores, targets, reduction="none")
            rows = counted.nonzero()[:, 0].cpu().numpy()
            total[start : start + len(part)] = np.bincount(rows, losses.cpu().numpy(), minlength=len(part))
            tokens[start : start + len(part)] = counted.sum(dim=1).cpu().numpy()
            if progress:
                progress(start + len(part), len(texts))
        return TextLosses(total, tokens)
