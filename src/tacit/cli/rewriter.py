"""`tacit train rewrite`: a rewriting model that has learned from private texts, paid for by DP-SGD."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.tasks import (
    Bound,
    Clipping,
    Data,
    Delta,
    Output,
    Quiet,
    Rank,
    Resume,
    Seed,
    Trials,
    carry_out,
    delta_of,
    noise_of,
    read_rows,
    usual_rate,
)
from tacit.errors import BadInputError
from tacit.rounding import exact, rounded_up


def rewriter(
    data: Data,
    output: Output,
    epsilon: Annotated[float, typer.Option(help="The privacy budget of one record, for the training alone.")],
    model: Annotated[str, typer.Option("--model", help="A BART to start from: built-in name, folder, hub name.")] = (
        "bart-20"
    ),
    text_column: Annotated[str, typer.Option(help="The column of the text.")] = "text",
    strategy: Annotated[str, typer.Option(help="What is trained: lora, full, bias, last-2 …")] = "lora",
    delta: Delta = "auto",
    epochs: Annotated[float, typer.Option(help="Passes over the data, on average.")] = 5.0,
    batch: Annotated[int, typer.Option("--batch", help="Records per step, on average.")] = 256,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help="As in 'tacit train'.")] = None,
    clipping: Clipping = "flat",
    bound: Bound = 1.0,
    trials: Trials = 1,
    physical: Annotated[int, typer.Option(help="Records worked on at a time; no influence on the result.")] = 32,
    rank: Rank = 8,
    resume: Resume = False,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """A rewriting model for 'dp-bart' that learns from private texts under differential privacy.

    It goes on from a BART of public text, and its folder is a BART that 'tacit rewrite' takes. The records it has
    learned from keep this budget whatever is rewritten; texts that are rewritten have that of 'tacit rewrite'.

    Example: tacit train rewrite letters.csv --epsilon 8 -o my-bart

    Example: tacit rewrite others.csv -m dp-bart --option model=my-bart --epsilon 500 -o out.csv
    """
    given = dict(locals())
    from tacit.cli.terminal import error_console
    from tacit.training.origin import starting_weights
    from tacit.training.run import Settings, TrainingRun
    from tacit.training.strategies import apply_strategy

    rows = read_rows(data, {"text": text_column})
    start = _start(model)
    task = _task(start, text_column)
    plan = _plan(given, len(rows))
    settings = Settings(
        learning_rate=usual_rate(strategy, private=plan.private) if learning_rate is None else learning_rate,
        clipping=clipping,
        bound=bound,
        physical=physical,
        strategy=strategy,
        model=model,
    )
    import torch

    torch.manual_seed(seed or 0)  # weights that are added start the same in a resumed run
    pieces = Pieces(start)
    run = TrainingRun(
        task, apply_strategy(start.model, strategy, rank=rank), pieces, rows, plan, settings, output, seed, trials,
        error_console().print, starting_weights(model),
    )  # fmt: skip
    pieces.pay(run.promise())
    said = f"{len(rows):,} records, {plan.steps:,} steps of about {plan.batch:,}, {noise_of(plan)}"
    carry_out(run, {**given, "test": None}, [], said)


def _start(name: str) -> Any:
    """A copy of the BART to start from: built-in models are shared."""
    import copy

    from tacit.documents.autoencoders.bart import BartAutoencoder

    found = copy.deepcopy(BartAutoencoder.from_pretrained(name))
    if found.kind != "bart" or found.record.epsilons():
        raise BadInputError(
            f"'{Path(name).name}' is not a BART that was trained without noise: start from bart-20, bart-40, or the "
            "folder or hub name of such a one"
        )
    if (found.record.bound or {"kind": "value"})["kind"] != "value":
        raise BadInputError(
            f"'{Path(name).name}' was trained with a bound on the norm of its latent, and private training clamps each "
            "value: start from bart-20, bart-40, or another BART that was trained with values clamped or not at all"
        )
    return found


def _task(start: Any, text_column: str) -> Any:
    from tacit.training.tasks.rewriting import Rewriting

    bound = start.record.trained_bound()
    return Rewriting(
        length=start.length,
        columns={"text": text_column},
        filling=start.padding_id,
        encoder_mask=start.record.encoder_mask,
        clip=None if bound is None else bound.C,
        kept=getattr(bound, "kept", None),
    )


def _plan(given: dict[str, Any], records: int) -> Any:
    from tacit.training.plan import Plan

    if given["batch"] > records:
        raise BadInputError(
            f"there are {records:,} rows, fewer than a batch of {given['batch']:,}: give a smaller --batch"
        )
    if given["epsilon"] == math.inf:
        return Plan.without_privacy(records=records, batch=given["batch"], epochs=given["epochs"])
    return Plan.calibrated(
        epsilon=given["epsilon"], records=records, batch=given["batch"], epochs=given["epochs"],
        delta=delta_of(given["delta"]), releases=given["trials"],
    )  # fmt: skip


class Pieces:
    """The vocabulary of a rewriting model as a tokenizer that is saved with it, together with its record."""

    def __init__(self, start: Any) -> None:
        self._start = start
        self.pad_token_id = start.padding_id

    def __len__(self) -> int:
        return int(self._start.pieces)

    def __call__(self, text: str) -> Any:
        return self._start.ids([text])[0]

    def get_vocab(self) -> dict[str, int]:
        return dict(self._start.tokenizer.get_vocab())

    def pay(self, promise: Any) -> None:
        """The record says that the weights have read private text, and what paid for it: nothing, if it was trained
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
        record.commands = [*record.commands, f"tacit train rewrite --epsilon {exact(promise.epsilon)}"]
        record.results = {}

    def save_pretrained(self, folder: Path) -> None:
        from tacit.documents.autoencoders.bart import save_tokenizer

        save_tokenizer(self._start.tokenizer, Path(folder))
        self._start.record.write(Path(folder))
