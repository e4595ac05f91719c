"""The place of everything in a training that must not leave: checkpoint, key of the noise, log with exact losses.

It is a folder of its own beside that of the model (`model` and `model.private`), so that the folder of the model can be
shared as it is. Earlier versions kept it inside, as `model/private`; a run that has it there goes on there.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

SUFFIX: Final = ".private"
STATE: Final = "checkpoint.pt"
LOG: Final = "log.csv"
_EARLIER: Final = "private"


def private_folder(folder: Path) -> Path:
    """The private folder of the run whose model goes to `folder`; it need not exist.

    >>> private_folder(Path("/models/reviews")).as_posix()
    '/models/reviews.private'
    """
    inside = folder / _EARLIER
    if any((inside / name).exists() for name in (STATE, LOG)):
        return inside
    place = folder.absolute()
    return place.with_name(f"{place.name}{SUFFIX}")


def holds_something(folder: Path) -> bool:
    """Whether a folder is there, and is not empty."""
    return folder.exists() and any(folder.iterdir())


def refuse_private_part(folder: Path) -> None:
    """Refuse a place whose private folder is taken, by a run whose model was removed or is somewhere else now."""
    if holds_something(private_folder(folder)):
        raise BadInputError(
            "private-folder-left",
            "{private} is left of an earlier run: remove it if nobody needs it any more, or give another folder",
            private=private_folder(folder),
        )


def remove_training(folder: Path) -> None:
    """Remove the folder of a model, and its private folder."""
    shutil.rmtree(private_folder(folder), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_unused(folder: Path) -> None:
    """Take back what a run has put beside and into `folder` before its first step."""
    shutil.rmtree(private_folder(folder), ignore_errors=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
