"""`tacit card`: the privacy card of a folder or a file, and a copy of a folder that may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

import click
from pydantic import Field

from tacit.card import Card
from tacit.cli.generated import command_for
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.errors import BadInputError
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import AsJson, Folder
from tacit.lineage import CARD, VOCABULARY_CARD, read_card
from tacit.training.sharing import share_folder

HELP = """Show the privacy card of a folder or a file, or copy what may leave of a folder.

With --share only the model, its tokenizer, its card and attributions are copied. A file that Tacit does not know, a
folder without a promise and an unfinished run are refused, and then nothing is copied. Logs, checkpoints and keys lie
beside the folder (model.private) and stay.

Example: tacit card model

Example: tacit card model --share for-everybody
"""


class CardOptions(Config):
    """The folder or file whose card is meant, and where a copy goes."""

    job: ClassVar[str] = "card"

    folder: Annotated[Folder, Field(description="A folder made by Tacit, a released file, or a card (json).")]
    share_to: Annotated[
        Path | None,
        Field(description="Copy all of the folder that may leave to this new folder, and nothing else."),
        Option(Group.DATA, name="share", metavar="DESTINATION"),
    ] = None
    as_json: Annotated[AsJson, Field(description="Print the card as JSON.")] = False


def card_of(place: Path) -> Card:
    """The card in a folder, beside a file, or in a file."""
    beside = place.with_name(f"{place.name}.card.json")
    for path in (place / CARD, place / VOCABULARY_CARD, beside, place):
        if path.is_file():
            return read_card(path)
    raise BadInputError("no-such-card", "there is no privacy card in or beside {folder}: check the name", folder=place)


def show(options: CardOptions) -> None:
    if options.share_to is not None:
        shared = share_folder(options.folder, options.share_to)
        error_console().print(
            f"{len(shared.files):,} files -> {shared.folder}: {', '.join(shared.files)}", markup=False, highlight=False
        )
        if shared.left_out:
            error_console().print(f"left out: {', '.join(shared.left_out)}", markup=False, highlight=False)
        card = shared.card
    else:
        card = card_of(options.folder)
    if options.as_json:
        click.echo(card.to_json())
    else:
        show_card(card, output_console())
    warn_if_nominal(card)


command = command_for("card", [CardOptions], show, help=HELP)
