"""`tacit train`: models under differential privacy; `tacit train check` proves that a model can be trained so."""

from __future__ import annotations

from tacit.cli import ensemble, selective
from tacit.cli.generated import command_for
from tacit.cli.recommend import Given, RecommendingCommand, recommending
from tacit.cli.task_commands import TaskGroup
from tacit.cli.terminal import output_console
from tacit.cli.training_display import QuietTraining, shown_training
from tacit.jobs.train import CONFIGS, run
from tacit.jobs.train_check import CheckConfig, check
from tacit.jobs.train_rewriter import TrainRewriterConfig
from tacit.jobs.train_rewriter import run as run_rewriter
from tacit.rounding import rounded_up

HELP = {
    "classify": "One label for each text, or pair of texts: tacit train classify reviews.csv --epsilon 3 -o model",
    "regress": "A number for each text, or pair of texts.",
    "tag": "A tag for each word; words and tags are separated by spaces.",
    "answer": "The part of a context that answers a question, word for word.",
    "write": "A causal language model of the texts (give --model).",
    "fill": "A masked language model of the texts (give --model).",
    "translate": "A text for a text: translation, summaries (give --model).",
}

REWRITER_HELP = """A rewriting model for 'dp-bart' that learns from private texts under differential privacy.

It goes on from a BART of public text, and its folder is a BART that 'tacit rewrite' takes. The records it has learned
from keep this budget whatever is rewritten; texts that are rewritten have that of 'tacit rewrite'.

Example: tacit train rewrite letters.csv --epsilon 8 -o my-bart

Example: tacit rewrite others.csv -m dp-bart --option model=my-bart --epsilon 500 -o out.csv
"""

CHECK_HELP = """Compare the clipped gradients of a model with those of one example at a time, without noise.

Exit code 0 and the largest deviation, or 2 and the weight whose gradient cannot be bounded. No data is needed.
"""


def show_check(config: CheckConfig) -> None:
    result = check(config)
    checked = result.checked
    console = output_console()
    console.print(
        f"engine {checked.engine}: norms within {rounded_up(checked.norm_deviation, 2)}, clipped sums within "
        f"{rounded_up(checked.sum_deviation, 2)} of one example at a time ({checked.parameters} weights, "
        f"{checked.examples} examples)"
    )
    console.print(
        f"filled up on the {result.side}, a record adds the same as alone, within {rounded_up(result.padding, 2)}"
        if result.length is None
        else f"every record has to be filled up to one length, here {result.length} word pieces: what it adds depends "
        "on it"
    )
    for name, reason in checked.refused.items():
        console.print(f"not {name}: {reason}")


def answers(given: Given) -> dict[str, object]:
    """The questions of the guide, answered by options of this command: a curator wants a classifier."""
    return {
        "protect": "text",
        "seen_by": "curator",
        "purpose": "classifier",
        "column": given.get("text_column"),
        **{name: given.get(name) for name in ("data", "label_column", "labels", "epsilon")},
    }


command = TaskGroup(
    "train",
    CONFIGS,
    shown_training(run),
    HELP,
    [
        command_for("rewrite", [TrainRewriterConfig, QuietTraining], shown_training(run_rewriter), help=REWRITER_HELP),
        selective.command,
        ensemble.training_command,
        command_for("check", [CheckConfig], show_check, help=CHECK_HELP),
    ],
    help="Train a model so that no single record can be recognized in it; name the task first: tacit train classify …",
)

command.add_command(
    recommending(
        command_for(
            "classify", [CONFIGS["classify"], QuietTraining], shown_training(run), help=HELP["classify"],
            kind=RecommendingCommand,
        ),
        answers,
    )
)  # fmt: skip
