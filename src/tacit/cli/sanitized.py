"""`tacit pretrain sanitized`: a model that has seen rewritten text before it is fine-tuned on some."""

from __future__ import annotations

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.terminal import error_console
from tacit.jobs.sanitized import SanitizedConfig, run

HELP = """Train a masked language model to guess the original words of rewritten public text (Yue et al. 2021).

Fine-tune it afterwards on texts that were rewritten in the same way: tacit train classify … --released CARD.

Example: tacit pretrain sanitized wiki.txt --public "WikiText-2" --epsilon 14 --vectors minilm -o aware
"""


def sanitized(config: SanitizedConfig, shown: Quiet) -> None:
    console = error_console()
    with Bars(shown=not shown.quiet, stays=True) as bars:
        model = run(config, lambda text, done, total: bars.show("pretraining", done, total, text), console.print)
    if not shown.quiet and model.losses:
        console.print(
            f"{model}. Fine-tune it with: tacit train classify RELEASED --released CARD --model {config.output}"
        )


command = command_for("sanitized", [SanitizedConfig, Quiet], sanitized, help=HELP)
