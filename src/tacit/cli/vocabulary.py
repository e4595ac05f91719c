"""`tacit vocabulary`: words and tokenizers learned from private text, with their privacy card."""

from __future__ import annotations

from typing import Annotated, ClassVar

import click
from pydantic import Field

from tacit.card import Card
from tacit.cli.bars import Bars, spinner
from tacit.cli.generated import command_for, group_of
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Folder
from tacit.jobs.ngrams import NgramsConfig
from tacit.jobs.ngrams import run as run_ngrams
from tacit.jobs.vocabulary import VocabularyConfig, run
from tacit.training.vocabulary import load_vocabulary

SHOWN_PHRASES = 6
"""Of each length."""
BUILD_HELP = """Learn the words of private texts, and a tokenizer from them.

The folder holds words with noisy counts (words.tsv), the card (vocabulary-card.json) and a tokenizer that
transformers loads. Each call spends its budget anew.

Example: tacit vocabulary build reviews.csv --epsilon 1 --size 4000 -o vocabulary
"""


def build(config: VocabularyConfig, shown: Quiet) -> None:
    with spinner("counting words", shown=not shown.quiet):
        vocabulary = run(config)
    if not shown.quiet:
        pieces = "" if vocabulary.tokenizer is None else f", {len(vocabulary.tokenizer):,} pieces ({config.kind})"
        error_console().print(f"{len(vocabulary.histogram):,} words{pieces} -> {config.output}")
        show_card(vocabulary.card, output_console())
    warn_if_nominal(vocabulary.card)


NGRAMS_HELP = """Release the phrases that many users write, with noisy counts.

Words that many users share are found first, then phrases whose parts were found, up to the longest. About 1 % of the
phrases of a length are made up by the noise; they cannot be told from the others. Counts are weighted (whoever uses 100
phrases of a length adds a tenth to each), so they compare within a length, not between a word and a phrase.

Example: tacit vocabulary ngrams notes.csv --user-column author --epsilon 1 --longest 5 -o phrases.csv
"""


def ngrams(config: NgramsConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        made = run_ngrams(config, bars.show)
    if not shown.quiet:
        for length in made.by_length:
            of_length = [each for each in made.phrases.items() if len(each[0].split()) == length]
            for phrase, count in of_length[:SHOWN_PHRASES]:
                click.echo(f"{count:>12,.1f}  {phrase}")
        lengths = ", ".join(f"{number:,} of {length} words" for length, number in made.by_length.items())
        error_console().print(f"{len(made):,} phrases ({lengths}) -> {config.output}", markup=False)
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


class VocabularyShowOptions(Config):
    """Which vocabulary is shown, and how much of it."""

    job: ClassVar[str] = "vocabulary show"

    folder: Annotated[Folder, Field(description="A folder made by 'tacit vocabulary build'."), Varied(metavar="DIR")]
    shown_words: Annotated[
        int,
        Field(description="How many of the most frequent words (also -n)."),
        Option(Group.DATA, old_names=("-n", "words")),
    ] = 20


def show(options: VocabularyShowOptions) -> None:
    vocabulary = load_vocabulary(options.folder)
    shown = zip(vocabulary.words[: options.shown_words], vocabulary.counts[: options.shown_words].tolist(), strict=True)
    for word, count in shown:
        click.echo(f"{count:>12,.1f}  {word}")
    show_card(Card(vocabulary.guarantee), output_console())


command = group_of(
    "vocabulary",
    [
        command_for("build", [VocabularyConfig, Quiet], build, help=BUILD_HELP),
        command_for("ngrams", [NgramsConfig, Quiet], ngrams, help=NGRAMS_HELP),
        command_for(
            "show",
            [VocabularyShowOptions],
            show,
            help="The most frequent words of a private vocabulary with their noisy counts, and its card.",
        ),
    ],
    help="Learn a vocabulary from private text: noisy word counts, and a tokenizer made from them.",
)
