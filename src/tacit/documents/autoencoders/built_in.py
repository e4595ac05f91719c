"""Models by name: those that come with the package, and those that lie in its source repository only.

An installation carries the models that a mechanism takes by itself. Models for comparisons with papers and for longer
texts weigh 13 MB and need torch anyway, so they lie in `experiments/models` of the repository: a checkout finds them by
name, and elsewhere the error says where they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

RECORD_FILE: Final = "tacit.json"
ASSETS: Final = Path(__file__).parent.parent / "assets"
CHECKOUT: Final = Path(__file__).parents[4]
PLACE: Final = "experiments/models"
REPOSITORY: Final = "https://github.com/tacit-dp/tacit"
REPOSITORY_MODELS: Final = ("adept-20-wide", "bart-20-unclipped", "bart-40")


def model_folders() -> dict[str, Path]:
    """The folders of all models that are found by name here, sorted."""
    places = (ASSETS, *([CHECKOUT / PLACE] if CHECKOUT.joinpath("src", "tacit").is_dir() else []))
    records = [record for place in places for record in place.glob(f"*/{RECORD_FILE}")]
    return {record.parent.name: record.parent for record in sorted(records, key=lambda record: record.parent.name)}


def built_in_models() -> list[str]:
    """Names of the models that come with Tacit, in a checkout also of those in its repository."""
    return list(model_folders())


def built_in_folder(name: str) -> Path | None:
    """The folder of a model that comes with Tacit.

    None for other names. A model that only the repository has is an error here, unless a folder of that name is given.
    """
    folder = model_folders().get(name)
    if folder is None and name in REPOSITORY_MODELS and not Path(name).is_dir():
        raise BadInputError(
            "model-in-repository",
            "'{name}' is not part of the installed package: it lies in the folder {place}/{name} of the source "
            "repository ({repository}). Give the path of that folder in place of the name",
            name=name,
            place=PLACE,
            repository=REPOSITORY,
        )
    return folder


def found_models(*names: str) -> tuple[str, ...]:
    """Those of these models that are found by name here."""
    folders = model_folders()
    return tuple(name for name in names if name in folders)
