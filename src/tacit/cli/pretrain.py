"""`tacit pretrain`: train rewriting models on public text."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli import sanitized
from tacit.cli.bars import Bars
from tacit.cli.generated import command_for, group_of
from tacit.jobs.pretrain import AutoencoderConfig, AverageConfig, NoiseConfig, PretrainConfig, PruneConfig, run

if TYPE_CHECKING:
    from tacit.documents.pretraining.loop import PretrainingStep

AUTOENCODER_HELP = """Train an autoencoder from scratch, with its own vocabulary, or go on from a model.

Example: tacit pretrain autoencoder tatoeba.txt --public "Tatoeba English, CC BY 2.0 FR" -o bart
"""
PRUNE_HELP = """Prune encoder neurons and retrain (DP-BART-PR).

Example: tacit pretrain prune bart-20 tatoeba.txt --public "Tatoeba English" -o bart-pruned
"""
NOISE_HELP = """Train on with clipping and the noise of an epsilon (DP-BART-PR+): one model for each epsilon.

Example: tacit pretrain noise bart-pruned tatoeba.txt --public "Tatoeba English" --epsilon 500 -o bart-500
"""
AVERAGE_HELP = """Take weights between two models of one shape, for example the pruned BART and its noisy-trained one.

Training with much noise forgets how to say things; halfway back is often better than either end. What MODEL was
trained for stays in the record; the text only serves to measure the result.

Example: tacit pretrain average bart-pruned bart-500 tatoeba.txt --public "Tatoeba English" -o bart-500-half
"""


def pretrain(config: PretrainConfig) -> None:
    name = "pruning" if isinstance(config, PruneConfig) else "training"
    with Bars(shown=True) as bars:

        def show(step: PretrainingStep) -> None:
            held_out = "" if step.held_out_loss is None else f", held out {step.held_out_loss:.3f}"
            line = f"{name} {step.done:,}/{step.total:,} loss {step.loss:.3f}{held_out}"
            bars.show(name, step.done, step.total, line)

        made = run(config, show, command_line())
    click.echo(made, err=True)


def command_line() -> str:
    """This command, without the folders it was run in."""
    words = [Path(word).name if "/" in word and Path(word).exists() else word for word in sys.argv[1:]]
    start = next((place for place, word in enumerate(words) if word in command.commands), 0)
    return "tacit pretrain " + " ".join(shlex.quote(word) for word in words[start:] if word != "--resume")


command = group_of(
    "pretrain",
    [
        sanitized.command,
        command_for("autoencoder", [AutoencoderConfig], pretrain, help=AUTOENCODER_HELP),
        command_for("prune", [PruneConfig], pretrain, help=PRUNE_HELP),
        command_for("noise", [NoiseConfig], pretrain, help=NOISE_HELP),
        command_for("average", [AverageConfig], pretrain, help=AVERAGE_HELP),
    ],
    help="Train the models behind document-level rewriting, on public text only.",
)
