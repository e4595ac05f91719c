"""Losses of models that `tacit train` has made, on rows read as in training: by role, cut to the same length, filled up
in the same way.

    classify    -ln p(label | text), without labels -ln of the largest probability
    regress     the squared error
    others      the loss that the task trains with (tag: the mean over words, answer: over both ends of the answer)

Language models (write, fill, translate) are not read here: their losses are those of `networks`, token by token.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.members import LabeledTexts, RoleColumns
from tacit.auditing.models.scores import Scorer, TextLosses
from tacit.auditing.models.scores.losses import check_paired, finite_losses
from tacit.auditing.models.scores.networks import CLASSIFIER, class_numbers, clean_text
from tacit.devices import device_of, moved
from tacit.errors import BadInputError, require
from tacit.progress import StepProgress
from tacit.training.origin import SETTINGS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tacit.training.tasks import Encoded, Row, Task

ROWS = 32
TOKEN_BY_TOKEN: Final = ("write", "fill", "translate", "rewrite")
"""Tasks whose models are scored as language models."""


def task_of_folder(folder: Path) -> Task | None:
    """The task of a folder of `tacit train`; None for any other folder."""
    if not (folder / SETTINGS).is_file():
        return None
    from tacit.training.prediction import read_settings
    from tacit.training.tasks import task_named

    settings = read_settings(folder)
    kind = task_named(str(settings["task"]))
    return kind(columns={str(role): str(column) for role, column in dict(settings.get("columns") or {}).items()})


def role_columns(model: object) -> RoleColumns | None:
    """The columns that a trained model reads, as its folder says; None for a model that reads texts alone."""
    if not isinstance(model, str | Path):
        return None
    task = task_of_folder(Path(model).expanduser())
    if task is None:
        return None
    usual = {role: role for role in task.roles if role not in task.optional_roles}
    return RoleColumns({**usual, **task.columns}, task.target, task.optional_roles)


def trained_scorer(folder: Path) -> TrainedScorer | None:
    """The scorer of a folder of `tacit train`; None for language models and for any other folder."""
    task = task_of_folder(folder)
    if task is None or task.name in TOKEN_BY_TOKEN:
        return None
    from tacit.training.prediction import load_trained

    return TrainedScorer(*load_trained(folder), folder.name)


class TrainedScorer(Scorer):
    """One loss per row, so `tokens` is 1."""

    kind = CLASSIFIER
    of_language: ClassVar[bool] = False

    def __init__(self, task: Task, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.torch = require("torch", extra="documents", purpose="scoring texts with a model")
        self.task, self.model, self.tokenizer, self.name = task, model.eval(), tokenizer, name
        self.inputs = [role for role in task.roles if role != task.target]

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        check_paired(texts, labels)
        required = [role for role in self.inputs if role not in self.task.optional_roles]
        if len(required) > 1:
            raise BadInputError(
                "rows-of-several-texts",
                "{name} reads {roles} of a row, so texts alone have no loss: give files with these columns",
                name=self.name,
                roles=", ".join(required),
            )
        rows = [{required[0]: text} for text in texts]
        if labels is not None and self.task.target:
            rows = [{**row, self.task.target: label} for row, label in zip(rows, labels, strict=True)]
        return self._of_rows(rows, texts, progress)

    def losses_of(self, side: LabeledTexts, progress: StepProgress | None = None) -> TextLosses:
        if side.rows is None:
            return self.losses(side.texts, side.labels, progress)
        return self._of_rows(side.rows, side.texts, progress)

    def _of_rows(self, rows: Sequence[Row], texts: Sequence[str], progress: StepProgress | None) -> TextLosses:
        labeled = bool(rows) and (not self.task.target or self.task.target in rows[0])
        if not labeled and self.task.name != "classify":
            raise BadInputError(
                "labels-missing",
                "{name} guesses what a row says, and without the truth that tells nothing: name the column of it with "
                "{option.label_column}",
                name=self.name,
            )
        if labeled and self.task.name == "classify":
            class_numbers(self.model.config, [row[self.task.target] for row in rows], self.name)
        clean = [{role: clean_text(value) for role, value in row.items()} for row in rows]
        encoded = [self.task.encode(row, self.tokenizer, train=labeled) for row in clean]
        cut = sum(len(self.tokenizer(text, verbose=False)["input_ids"]) > self.task.length for text in texts)
        total = np.zeros(len(rows))
        order = sorted(range(len(rows)), key=lambda place: len(encoded[place]["input_ids"]))
        for start in range(0, len(order), ROWS):
            batch = order[start : start + ROWS]
            total[batch] = self._of([encoded[i] for i in batch], [clean[i] for i in batch], labeled=labeled)
            if progress:
                progress(start + len(batch), len(rows))
        return TextLosses(finite_losses(total, self.name), np.ones(len(rows), dtype=np.int64), cut)

    def _of(self, encoded: list[Encoded], rows: list[dict[str, str]], *, labeled: bool) -> Floats:
        from tacit.training.tasks.base import model_inputs

        batch = self.task.collate(encoded, self.tokenizer)
        with self.torch.inference_mode():
            batch = moved(batch, device_of(self.model))
            if self.task.name not in ("classify", "regress"):
                return np.asarray(self.task.loss(self.model, batch).cpu().double().numpy())
            logits = self.model(**model_inputs(batch)).logits.cpu().double()
        if self.task.name == "regress":
            return np.asarray((logits[:, 0] - batch["label"].cpu()).numpy() ** 2)
        scores = logits.log_softmax(dim=-1)
        if not labeled:
            return np.asarray(-scores.max(dim=1).values.numpy())
        numbers = class_numbers(self.model.config, [row[self.task.target] for row in rows], self.name)
        return np.asarray(-scores.gather(1, self.torch.tensor(numbers)[:, None])[:, 0].numpy())


def check_auditable(folder: Path) -> None:
    """Refuse folders of Tacit that hold no model whose losses could be asked, and say what to audit in their place."""
    for name, code, sentence in NOT_ASKED:
        if (folder / name).is_file():
            raise BadInputError(code, sentence, folder=folder.name)


NOT_ASKED: Final = (
    (
        "graph.json",
        "graph-model-not-audited",
        "{folder} holds a model of a graph, whose records are linked: a loss of a text alone says nothing about it, "
        "and no attack on it is built; 'tacit graph predict' is what it is for",
    ),
    (
        "ensemble.json",
        "ensemble-not-audited",
        "{folder} holds an ensemble, which is private as a whole: its models have learned without noise, and attacking "
        "them would only show that. What it releases are answers: look those up in the private rows",
    ),
    (
        "vectors.json",
        "vector-model-not-audited",
        "{folder} holds a linear classifier of vectors, made of released vectors or of noisy sums alone: audit the "
        "vectors it was made from, with 'tacit audit vectors'",
    ),
)
"""Files that mark a folder, the code of the error, and what it says."""
