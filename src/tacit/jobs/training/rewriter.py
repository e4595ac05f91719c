"""A training of a rewriting model on private texts, from its options to the saved model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from tacit.documents.autoencoders.bart import BartAutoencoder, save_tokenizer
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.jobs.train_rewriter import TrainRewriterConfig
from tacit.jobs.training.planning import plan_for_records
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.jobs.training.running import carry_out, read_rows, run_options
from tacit.rounding import exact, rounded_up
from tacit.training.origin import starting_weights
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.strategies import apply_strategy
from tacit.training.tasks.rewriting import Rewriting

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def train_on_texts(config: TrainRewriterConfig, progress: TrainingProgress) -> TrainingResult:
    """A rewriting model that has learned from the texts of a configuration."""
    rows = read_rows(config.data, {"text": config.text_column})
    start = load_start(config.model)
    task = rewriting_task(start, config.text_column)
    plan = plan_for_records(config, config.epsilon, len(rows))
    settings = TrainingSettings(
        learning_rate=config.rate(private=plan.private),
        clipping=config.clipping,
        bound=config.bound,
        physical=config.physical,
        strategy=config.strategy,
        model=config.model,
    )
    torch.manual_seed(config.seed or 0)  # weights that are added start the same in a resumed run
    pieces = RewriterPieces(start)
    run = TrainingRun(
        task=task,
        model=apply_strategy(start.model, config.strategy, rank=config.rank),
        tokenizer=cast("PreTrainedTokenizerBase", pieces),
        rows=rows,
        plan=plan,
        settings=settings,
        origin=starting_weights(config.model),
        **run_options(config, config.output, progress),
    )
    pieces.record_budget(run.promise())
    return carry_out(config, run, progress)


def load_start(name: str) -> BartAutoencoder:
    """A copy of the BART to start from: built-in models are shared."""
    start = copy.deepcopy(BartAutoencoder.from_pretrained(name))
    if start.kind != "bart" or start.record.epsilons():
        raise BadInputError(
            "not-a-public-bart",
            "'{name}' is not a BART that was trained without noise: start from bart-20, or the folder or hub name "
            "of such a one",
            name=Path(name).name,
        )
    if (start.record.bound or {"kind": "value"})["kind"] != "value":
        raise BadInputError(
            "bart-with-bounded-norm",
            "'{name}' was trained with a bound on the norm of its latent, and private training clamps each value: "
            "start from bart-20, or another BART that was trained with values clamped or not at all",
            name=Path(name).name,
        )
    return start


def rewriting_task(start: BartAutoencoder, text_column: str) -> Rewriting:
    """The task of a rewriting model: reconstruct a text from its latent, with the bound the model had before."""
    bound = start.record.trained_bound()
    return Rewriting(
        length=start.length,
        columns={"text": text_column},
        filling=start.padding_id,
        encoder_mask=start.record.encoder_mask,
        clip=None if bound is None else bound.C,
        kept=getattr(bound, "kept", None),
    )


class RewriterPieces:
    """The vocabulary of a rewriting model as a tokenizer that is saved with it, together with its record."""

    def __init__(self, start: BartAutoencoder) -> None:
        self._start = start
        self.pad_token_id = start.padding_id

    def __len__(self) -> int:
        return int(self._start.pieces)

    def __call__(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._start.ids([text])[0]
        return ids

    def get_vocab(self) -> dict[str, int]:
        return dict(self._start.tokenizer.get_vocab())

    def record_budget(self, promise: Guarantee) -> None:
        """Note in the record that the weights have read private text, and what paid for it: nothing, if it was trained
        without noise, and then nobody can make a promise with it."""
        record, before = self._start.record, self._start.record.private
        record.private = ""
        if promise.is_private and before != "":
            paid = (
                f"DP-SGD, a budget of its own: epsilon {rounded_up(promise.epsilon, 4)}, delta "
                f"{rounded_up(promise.delta, 3)} for one "
                f"{promise.unit.value} of the training texts"
            )
            record.private = paid if before is None else f"{before}; {paid}"
        record.corpora = [*record.corpora, "private text (tacit train rewrite)"]
        record.commands = [*record.commands, f"tacit train rewrite, epsilon {exact(promise.epsilon)}"]
        record.results = {}

    def save_pretrained(self, folder: Path) -> None:
        save_tokenizer(self._start.tokenizer, Path(folder))
        self._start.record.write(Path(folder))
