"""The folder of an ensemble. All of it is private: only what `tacit predict` writes may leave.

ensemble.json                 settings, when all shards are there
card.json                     that nothing is promised about this folder
private/split.key             the key of the hash that chooses shards
private/run.json              settings and a fingerprint of the rows, for a training that goes on
private/shards/0007.safetensors
private/asking-.../           answers that are not finished: the key of their noise, and what was drawn so far
"""

from __future__ import annotations

import json
import math
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tacit.atomic import write_file
from tacit.card import Card
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit, VoidReason
from tacit.lineage import CARD
from tacit.noise.kept_key import check_private_folder, keep_key, kept_key
from tacit.noise.source import KEY_BYTES

SETTINGS: Final = "ensemble.json"
PRIVATE: Final = "private"
RUN: Final = "run.json"
SPLIT_KEY: Final = "split.key"
NOTHING_PROMISED: Final = (
    "the models of its shards have learned without noise: keep the folder to yourself, and release only answers that "
    "'tacit predict' has drawn"
)


@dataclass(frozen=True)
class EnsembleSettings:
    """Settings that an ensemble was made with; all of them public but the name of its data set.

    unit   "user" or "record": what is in one shard as a whole
    """

    model: str
    shards: int
    unit: str
    dataset: str
    rank: int
    length: int
    epochs: float
    batch: int
    learning_rate: float
    start_seed: int

    @property
    def unit_of_privacy(self) -> Unit:
        return Unit(self.unit)


def is_ensemble(folder: str | Path) -> bool:
    """Whether a folder holds an ensemble, finished or not."""
    place = Path(folder)
    return (place / SETTINGS).is_file() or (place / PRIVATE / SPLIT_KEY).is_file()


class EnsembleFolder:
    """The files of one ensemble."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def private(self) -> Path:
        return self.path / PRIVATE

    def shard(self, number: int) -> Path:
        return self.private / "shards" / f"{number:04}.safetensors"

    # Training ---------------------------------------------------------------------------------------------------

    def begin(self, settings: EnsembleSettings, *, resume: bool) -> bytes:
        """The key of the hash for a training that begins here, or goes on."""
        if (self.path / SETTINGS).exists():
            raise BadInputError(
                "folder-not-empty", "{folder} holds a finished ensemble: give another folder", folder=self.path
            )
        unfinished = (self.private / SPLIT_KEY).exists()
        if resume and not unfinished:
            raise BadInputError(
                "no-unfinished-run",
                "there is no unfinished run in {folder}: start one without {option.resume}",
                folder=self.path,
            )
        if unfinished and not resume:
            raise BadInputError(
                "unfinished-run",
                "{folder} is not empty: go on with {option.resume}, or give another folder",
                folder=self.path,
            )
        if not resume and self.path.exists() and any(self.path.iterdir()):
            raise BadInputError("folder-not-empty", "{folder} is not empty: give another folder", folder=self.path)
        if resume:
            check_private_folder(self.private)
            return kept_key(self.private / SPLIT_KEY, KEY_BYTES)
        self.shard(0).parent.mkdir(parents=True)
        self.private.chmod(0o700)
        write_file(self.path / CARD, Card(nothing_promised(settings)).to_json().encode())
        key = secrets.token_bytes(KEY_BYTES)
        keep_key(self.private / SPLIT_KEY, key)
        return key

    def check_same_run(self, settings: EnsembleSettings, rows: str) -> None:
        """Refuse to go on with other rows or settings than the shards that are there were trained with."""
        place = self.private / RUN
        now = {"settings": asdict(settings), "rows": rows}
        if not place.exists():
            write_file(place, json.dumps(now).encode(), private=True)
            return
        before = json.loads(place.read_text(encoding="utf-8"))
        for part in now:
            if before.get(part) != now[part]:
                raise BadInputError(
                    "another-run",
                    "the unfinished run in {folder} had another {part}: repeat its command, or start anew in another "
                    "folder",
                    folder=self.path,
                    part=part,
                )

    def finish(self, settings: EnsembleSettings) -> None:
        write_file(self.path / SETTINGS, (json.dumps(asdict(settings), indent=2) + "\n").encode(), private=True)

    # Use --------------------------------------------------------------------------------------------------------

    def settings(self) -> EnsembleSettings:
        """The settings of a finished ensemble."""
        place = self.path / SETTINGS
        if not place.is_file():
            if is_ensemble(self.path):
                raise BadInputError(
                    "run-not-finished",
                    "the run in {folder} is not finished: go on with its training ({option.resume})",
                    folder=self.path,
                )
            raise BadInputError(
                "not-an-ensemble",
                "{folder} is not a folder that 'tacit train ensemble' has made: give one that it has made",
                folder=self.path,
            )
        try:
            return EnsembleSettings(**json.loads(place.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise BadInputError(
                "damaged-file", "{path} is damaged: train the ensemble again, or repair it", path=place
            ) from error


def nothing_promised(settings: EnsembleSettings) -> Guarantee:
    """The guarantee of the folder itself: none."""
    return Guarantee(
        notion=Notion.NONE,
        epsilon=math.inf,
        model=Model.CENTRAL,
        unit=settings.unit_of_privacy,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism="models of shards without noise",
        parameters={"shards": settings.shards},
        void=NOTHING_PROMISED,
        void_reason=VoidReason.NO_NOISE,
    )
