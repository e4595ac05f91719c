"""The folder of a private writer: a model, the noisy label counts, and one card for both.

The budget is shared: the model gets most of it, the label counts the rest, and the card adds them up. The counts are
drawn after the training, and written only after the card that pays for them, so the card never promises more than the
folder keeps. With the folder at hand any amount of text can be written at no further cost.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tacit.account.parts import in_two_parts
from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.lineage import CARD
from tacit.noise.source import Source, StreamKey
from tacit.text.files import write_whole
from tacit.training.checkpoint import RunState, run_state
from tacit.training.models import load_model
from tacit.training.run import StepReport, TrainingRun
from tacit.training.synthesis.codes import ControlCodes, ControlledWriting
from tacit.training.synthesis.counts import (
    LabelCounts,
    counts_guarantee,
    counts_without_privacy,
    equal_counts,
    noisy_counts,
)
from tacit.training.synthesis.filters import Filters
from tacit.training.synthesis.sampling import Sampling
from tacit.training.users import Users

SYNTHESIS = "synthesis.json"
TRAINING_CARD = "training.card.json"
COMMAND = "command.json"
COUNT_SHARE = 0.05

SEVERAL_RECORDS = "several records of one person: the promise is for one record at a time"
IN_COMMON = "what many {unit}s have in common: the model is meant to learn it"
POST_PROCESSING = "the number of texts, the sampling and the filters were chosen without looking at the private rows"


@dataclass(frozen=True)
class Budget:
    """Epsilon for all, and the part of it that pays for the label counts. Infinite: no privacy, for baselines."""

    epsilon: float
    count_share: float = COUNT_SHARE

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise BadParameterError(
                "impossible-epsilon", "epsilon must be positive, not {epsilon:g}", epsilon=self.epsilon
            )
        if not 0 < self.count_share < 1:
            raise BadParameterError(
                "impossible-share",
                "the share of the label counts lies between 0 and 1, not {share:g}",
                share=self.count_share,
            )

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    def for_counts(self, *, counted: bool) -> float:
        if not counted:
            return 0.0
        return in_two_parts(self.epsilon, self.count_share)[0] if self.private else self.epsilon

    def for_training(self, *, counted: bool) -> float:
        if not (counted and self.private):
            return self.epsilon
        return in_two_parts(self.epsilon, self.count_share)[1]


@dataclass
class WriterTraining(TrainingRun):
    """Training and counting, into one folder. `balanced`: equal numbers for all labels instead of counting them."""

    task: ControlledWriting
    budget: Budget = field(kw_only=True)
    text_column: str = field(default="text", kw_only=True)
    balanced: bool = field(default=False, kw_only=True)

    @property
    def counted(self) -> bool:
        return bool(self.task.codes.columns) and not self.balanced

    def check_folder(self, *, resume: bool) -> None:
        """Refuse a folder that holds something else, before anything is done."""
        if not (resume and (self.folder / CARD).exists()):
            super().check_folder(resume=resume)

    def run(self, progress: Callable[[StepReport], None] | None = None, *, resume: bool = False) -> Guarantee:
        """Train, count, save; return what the folder promises."""
        command = self._command()  # of the model as it is now: training may merge weights
        trained = resume and run_state(self.folder) is RunState.FINISHED
        if trained:
            self._check_same(command)
            self.charge.reserve(self.charged())  # again: the same run is charged once
        if trained and is_finished(self.folder):
            self.charge.commit()
            return read_card(self.folder / CARD).guarantee
        if not trained:
            self.task.check_length(self.tokenizer)
            super().run(progress, resume=resume)
            write_whole(self.private / COMMAND, json.dumps(command, indent=1) + "\n")
        if not (self.folder / TRAINING_CARD).exists():
            write_whole(self.folder / TRAINING_CARD, (self.folder / CARD).read_text(encoding="utf-8"))
        training = read_card(self.folder / TRAINING_CARD).guarantee
        counts = self._count()
        promised = writer_guarantee(training, counts, self.task.codes, self.trials)
        write_whole(self.folder / CARD, Card(promised, configuration=self.configuration).to_json())
        write_whole(self.folder / SYNTHESIS, json.dumps(self._facts(counts), indent=1) + "\n")
        self.charge.commit()
        return promised

    def charged(self) -> Guarantee:
        training = super().charged()
        if not self.counted or not self.budget.private:
            return training
        return training.then(*[self._promise_of_counts()] * self.trials)

    def _promise_of_counts(self) -> Guarantee:
        return counts_guarantee(
            self.task.codes,
            epsilon=self.budget.for_counts(counted=True),
            adjacency=self.plan.adjacency,
            secure=self.seed is None,
            unit=self.plan.unit,
        )

    @property
    def _users(self) -> Users | None:
        return None if self.user_rows is None else self.user_rows.users

    def _settle(self) -> None:
        """Spend nothing yet: the labels have still to be counted."""

    def _command(self) -> dict[str, str]:
        """The settings the folder was made with, for a resumed run to compare."""
        counting = {"epsilon": self.budget.epsilon, "share": self.budget.count_share, "balanced": self.balanced}
        return {"counting": json.dumps(counting), "training": self.described()}

    def _check_same(self, now: dict[str, str]) -> None:
        """A trained folder answers no other command: its texts would have the budget and the look of the old one."""
        place = self.private / COMMAND
        if not place.is_file():
            raise BadInputError(
                "unknown-training",
                "{folder} does not say by which command it was trained: write with it by {option.from_model}, or start "
                "anew in another folder ({option.keep_model})",
                folder=self.folder,
            )
        kept = json.loads(place.read_text(encoding="utf-8"))
        if kept["counting"] != now["counting"]:
            raise BadInputError(
                "another-budget",
                "the finished run in {folder} had another epsilon or way to count labels: repeat its command, write "
                "with it by {option.from_model}, or start anew in another folder ({option.keep_model})",
                folder=self.folder,
            )
        self.check_same(kept["training"], "finished")

    def _count(self) -> LabelCounts:
        if not self.counted:
            return equal_counts(self.task.codes)
        if not self.budget.private:
            return counts_without_privacy(self.rows, self.task.codes, self._users)
        # A stream of its own: the noise of the training is keyed apart and its key is gone.
        source = (
            Source.from_os() if self.seed is None else StreamKey.from_test_seed(self.seed).stream(0, b"label counts")
        )
        return noisy_counts(
            self.rows,
            self.task.codes,
            epsilon=self.budget.for_counts(counted=True),
            adjacency=self.plan.adjacency,
            source=source,
            users=self._users,
        )

    def _facts(self, counts: LabelCounts) -> dict[str, object]:
        codes = self.task.codes
        return {
            "text_column": self.text_column,
            "columns": list(codes.columns),
            "values": [list(names) for names in codes.values],
            "names_given": codes.given,
            "counts": [[list(combination), count] for combination, count in counts.counts.items()],
            "counted": self.counted,
            "length": self.task.length,
            "count_codes": self.task.count_codes,
            "model": self.settings.model,
        }


def writer_guarantee(training: Guarantee, counts: LabelCounts, codes: ControlCodes, trials: int = 1) -> Guarantee:
    """The guarantee of model and counts together: epsilons and deltas add up. All runs that were compared count."""
    promised = training
    if counts.guarantee is not None:
        promised = training.then(*[counts.guarantee] * trials)
    names = (
        "the names of the labels were given by the user, without looking them up in the private rows"
        if codes.given
        else "the names of the labels are public: they were read off the private rows"
    )
    return promised.also_assuming(*([names] if codes.columns else []))


def corpus_guarantee(folder_guarantee: Guarantee, filters: Filters, sampling: Sampling) -> Guarantee:
    """The guarantee of generated texts: that of the folder they come from."""
    writing = {
        "temperature": sampling.temperature,
        "top-p": sampling.top_p,
        "filters": filters.described(),
        "seed of the sampling": f"{sampling.seed} (public)",
    }
    made = replace(
        folder_guarantee,
        mechanism=f"synthetic text: {folder_guarantee.mechanism}",
        parameters={**folder_guarantee.parameters, **writing},
        history=(*folder_guarantee.history, "texts written by the private model: post-processing"),
    )
    unit = folder_guarantee.unit
    several = (SEVERAL_RECORDS,) if unit is Unit.RECORD else ()
    return made.also_not_covered(*several, IN_COMMON.format(unit=unit.value)).also_assuming(POST_PROCESSING)


# The folder, opened again -----------------------------------------------------------------------------------------


@dataclass
class PrivateWriter:
    """A trained writer with its guarantee. Nothing in it is private beyond the card."""

    folder: Path
    task: ControlledWriting
    counts: LabelCounts
    guarantee: Guarantee
    text_column: str
    base_model: str

    @classmethod
    def open(cls, folder: str | Path) -> PrivateWriter:
        place = Path(folder)
        if not (place / SYNTHESIS).is_file():
            raise BadInputError(
                "not-a-synthesis-folder",
                "the folder {folder} was not made by 'tacit synthesize', or is not finished: give one that holds "
                "{file}",
                folder=place.name,
                file=SYNTHESIS,
            )
        try:
            facts = json.loads((place / SYNTHESIS).read_text(encoding="utf-8"))
            codes = ControlCodes(
                tuple(facts["columns"]), tuple(tuple(names) for names in facts["values"]), facts["names_given"]
            )
            counts = {tuple(combination): int(count) for combination, count in facts["counts"]}
            task = ControlledWriting(length=int(facts["length"]), codes=codes, count_codes=bool(facts["count_codes"]))
            text_column, base = str(facts["text_column"]), str(facts["model"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInputError(
                "damaged-file",
                "the file {file} in {folder} is damaged: copy the folder again",
                file=SYNTHESIS,
                folder=place.name,
            ) from error
        card = read_card(place / CARD)
        return cls(place, task, LabelCounts(counts, None), card.guarantee, text_column, base)

    def load(self) -> tuple[Any, Any]:
        """The model and its tokenizer."""
        return load_model(self.task, str(self.folder))

    def weights(self) -> str:
        """A name of the model by its content."""
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted(self.folder.glob("*.safetensors")):
            digest.update(path.read_bytes())
        return digest.hexdigest()


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a writer that was trained and counted to the end."""
    return (folder / SYNTHESIS).is_file() and (folder / CARD).is_file()


def read_card(path: Path) -> Card:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(
            "no-such-card",
            "the folder {folder} has no privacy card: text without one is not made",
            folder=path.parent.name,
        ) from error
    return Card.from_json(text)
