"""`tacit synthesize`: a corpus that may be shared, by matching public sentences or by a model that is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from tacit.cli import synthesize_prompting, synthesize_training
from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.recommend import Given, RecommendingCommand, recommending
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.errors import StoppedError
from tacit.jobs.synthesize import MatchingConfig, run

TRAINING, PROMPTING = "training", "prompting"
HELP = """Release a corpus that may be shared in place of private rows: public sentences with labels, chosen by noisy
sums of the private rows.

The sums are released once, as a sketch, and pay for everything: draw from it again as often as you like, with other
public sentences, at no further cost. Text, length and label of a row are all covered.

With --by training a language model is trained to write instead: 'tacit synthesize --by training --help'. With --by
prompting a public one reads the rows and its words are drawn: 'tacit synthesize --by prompting --help'.

Example: tacit synthesize tickets.csv --label-column intent --labels refund,delivery --epsilon 1 -o synthetic.csv

Example: tacit synthesize --from synthetic-sketch.tacit --pool medicine.tacit -n 50000 -o more.csv
"""


class SynthesizeCommand(RecommendingCommand):
    """The command by matching; `--by training`, `--by prompting` and models that exist lead to the other two."""

    @property
    def commands(self) -> dict[str, click.Command]:
        return {TRAINING: synthesize_training.command, PROMPTING: synthesize_prompting.command}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.commands.get(name)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if (way := way_of(args)) in self.commands:
            return self.commands[way].make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def way_of(arguments: Sequence[str]) -> str:
    """The way that arguments choose.

    >>> way_of(["in.csv", "--by=training"]), way_of(["--from-model", "m"]), way_of(["in.csv"])
    ('training', 'training', 'matching')
    >>> way_of(["in.csv", "--by", "prompting"])
    'prompting'
    """
    chosen = [after for flag, after in zip(arguments, [*arguments[1:], ""], strict=True) if flag == "--by"]
    chosen += [argument.removeprefix("--by=") for argument in arguments if argument.startswith("--by=")]
    existing = any(argument == "--from-model" or argument.startswith("--from-model=") for argument in arguments)
    if PROMPTING in chosen:
        return PROMPTING
    return TRAINING if TRAINING in chosen or existing else "matching"


def synthesize(config: MatchingConfig, shown: Quiet) -> None:
    with stoppable(config), Bars(shown=not shown.quiet) as bars:
        made = run(config, bars.show)
    if not shown.quiet:
        error_console().print(f"{len(made):,} rows -> {made.output}; sketch: {made.sketch_path}", markup=False)
        if made.report_path is not None:
            error_console().print(f"report that may be shared: {made.report_path}", markup=False)
        if made.private_report_path is not None:
            error_console().print(f"PRIVATE report, not to be shared: {made.private_report_path}", markup=False)
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


@contextmanager
def stoppable(config: MatchingConfig) -> Iterator[None]:
    """Work that can be stopped with Ctrl-C; whoever stops it learns what was spent."""
    try:
        yield
    except KeyboardInterrupt:
        if config.sketch_path.exists():
            raise StoppedError(
                "stopped-drawing",
                "stopped: the sketch {path} is complete; draw from it with {option.from_sketch} at no further cost",
                path=config.sketch_path,
            ) from None
        raise StoppedError(
            "stopped-before-release", "stopped: nothing was released and nothing is lost; repeat the command"
        ) from None


def answers(given: Given) -> dict[str, object]:
    """The questions of the guide, answered by options of this command: a curator wants to share a corpus."""
    return {
        "protect": "text" if given.get("user_column") is None else "person",
        "seen_by": "curator",
        "purpose": "share" if given.get("topics") is None else "topics",
        "label_column": next(iter(given.get("label_columns") or ()), None),
        **{name: given.get(name) for name in ("data", "column", "user_column", "labels", "epsilon", "format")},
    }


command = recommending(
    command_for("synthesize", [MatchingConfig, Quiet], synthesize, help=HELP, kind=SynthesizeCommand), answers
)
