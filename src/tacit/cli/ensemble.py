"""`tacit train ensemble` and the way of `tacit predict` that answers with one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.cli.training_display import stoppable
from tacit.errors import StoppedError
from tacit.jobs.ensemble import EnsembleConfig
from tacit.jobs.ensemble import run as run_training
from tacit.jobs.predict_ensemble import EnsembleAnswersConfig
from tacit.jobs.predict_ensemble import run as run_answers

TRAINING_HELP = """Models that may be asked but not given away: one small LoRA for each shard of the private texts.

Nothing is spent by training, and nothing of the folder may leave. 'tacit predict' draws answers from it under
differential privacy, and each token spends budget from a ledger.

Example: tacit train ensemble notes.csv --user-column author --shards 64 -o ensemble

Example: tacit predict ensemble prompts.txt --epsilon 3 --tokens 1000 --ledger ledger.db -o answers.csv
"""

ANSWERS_HELP = """Answers of an ensemble, drawn token by token under differential privacy and paid for from a ledger.

Give the budget of all tokens with --epsilon, or the band around the public model with --up and --down; the card says
what they cost one user or record. All tokens of a call are paid for before the first is drawn, and many tokens in one
call cost less than in many. Prompts are not protected: they are public, or your own.

Example: tacit predict ensemble prompts.txt --epsilon 3 --tokens 1000 --ledger ledger.db -o answers.csv
"""


def train(config: EnsembleConfig, shown: Quiet) -> None:
    with stoppable(config.output), Bars(shown=not shown.quiet) as bars:
        trained = run_training(config, bars.show)
    if not shown.quiet:
        empty = f", {trained.empty:,} of them empty" if trained.empty else ""
        console = error_console()
        console.print(f"{trained.shards:,} shards of {trained.rows:,} rows{empty}: {trained.folder}", markup=False)
        console.print("The folder is private. Only answers of 'tacit predict' may leave, and each token is paid for.")


def answer(config: EnsembleAnswersConfig, shown: Quiet) -> None:
    with answers_stoppable(), Bars(shown=not shown.quiet) as bars:
        made = run_answers(config, bars.show)
    if not shown.quiet:
        console = error_console()
        console.print(f"{len(made):,} answers, {made.drawn:,} tokens -> {made.output}", markup=False)
        if made.unanswered:
            console.print(f"{made.unanswered:,} answers are missing: the paid tokens were used up before")
        console.print(f"spent so far: {made.spent}", markup=False)
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


@contextmanager
def answers_stoppable() -> Iterator[None]:
    """Work that can be stopped with Ctrl-C and taken up again."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(
            "stopped-answers",
            "stopped: the tokens are paid for; repeat the command with {option.resume} to go on, and nothing is paid "
            "twice",
        ) from None


training_command = command_for("ensemble", [EnsembleConfig, Quiet], train, help=TRAINING_HELP)
answers_command = command_for("ensemble", [EnsembleAnswersConfig, Quiet], answer, help=ANSWERS_HELP)
