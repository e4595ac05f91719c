"""Selective differential privacy: protect the sensitive places of a text and learn the rest without noise.

Shi, Shea, Chen, Zhang, Jia & Yu, "Just fine-tune twice: selective differential privacy for large language models"
(EMNLP 2022). Two phases:

    1   fine-tune on *redacted* text, where a placeholder stands for each sensitive place, without noise
    2   fine-tune privately (DP-SGD) on the original text

Promise. Let R be the redaction, a fixed function of one record. Phase 1 sees R(D) only. Two data sets that differ in
one record x, x' with R(x) = R(x') give the same phase 1, and phase 2 is (epsilon, delta)-DP between them, accounted for
*replacing* a record (twice the sensitivity of adding one): that is the adjacency `SAME_REDACTED`. It is *no* guarantee
for a record: what R leaves, also a name that the detector missed, is learned without any protection.

The strict variants keep the promise to whole records: phase 1 on public text, or phase 1 private as well, with its
budget added.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tacit.account.delta import check_delta, check_trials
from tacit.account.release_charge import ReleaseCharge
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Provenance, ProvenanceKind
from tacit.training.checkpoint import RunState, read_guarantee, run_state
from tacit.training.origin import Origin
from tacit.training.plan import TrainingPlan, check_composed
from tacit.training.private_folder import holds_something, private_folder
from tacit.training.run import StepReport, TrainingRun, TrainingSettings, digest_of
from tacit.training.tasks import Row, Task

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

FIRST_FOLDER = "first-phase"
FIRST_FACTS = "phase.json"

NOT_COVERED = (
    "all text and labels that the redaction leaves: they were learned without any protection",
    "sensitive places that the redaction missed: they are part of that text",
    "where something was redacted",
    "adding or removing a whole record: which records were there is not hidden",
)

FIXED_RULE = "the redaction is a fixed rule: it was not made by looking at the records"


# The promise ------------------------------------------------------------------------------------------------------


class FirstKind(StrEnum):
    """The kind of text that the first phase learns from, and whether it is private."""

    REDACTED = "redacted"
    PUBLIC = "public"
    PRIVATE = "private"


@dataclass(frozen=True)
class First:
    """The first phase, as far as the promise needs it. `guarantee` only where it was private."""

    kind: FirstKind
    redaction: str
    public: str = ""
    guarantee: Guarantee | None = None


def needed_adjacency(kind: FirstKind, wanted: Adjacency = Adjacency.ADD_REMOVE) -> Adjacency:
    """How the second phase must be accounted for: another text with the same redaction is a replaced record."""
    return Adjacency.REPLACE_ONE if kind is FirstKind.REDACTED else wanted


def selective_guarantee(second: Guarantee, first: First) -> Guarantee:
    """The guarantee of a model after both phases."""
    if not second.is_private:
        return second
    if first.kind is FirstKind.PUBLIC:
        source = f"{first.public}, declared public"
        learned = Provenance("weights of the first phase", source, kind=ProvenanceKind.DECLARED_PUBLIC)
        return replace(second, provenance=(*second.provenance, learned))
    if first.kind is FirstKind.PRIVATE:
        if first.guarantee is None:
            raise NoGuaranteeError("phase-without-guarantee", "a private first phase comes with its guarantee")
        return first.guarantee.then(second)
    if second.adjacency is not Adjacency.REPLACE_ONE:
        raise NoGuaranteeError(
            "adjacency-not-accounted",
            "after a first phase on redacted text the second must be accounted for replacing one record: another "
            "text in the redacted places is a replaced record",
        )
    learned = Provenance(
        "weights of the first phase",
        f"the same records, redacted by {first.redaction}",
        public=False,
        paid_by="no budget: what the redaction leaves is outside of the promise",
    )
    return (
        replace(
            second,
            adjacency=Adjacency.SAME_REDACTED,
            domain=f"redaction by {first.redaction}",
            mechanism=f"selective: plain training on redacted text, then {second.mechanism}",
            provenance=(*second.provenance, learned),
            history=(*second.history, "replaced records with the same redacted text only"),
        )
        .also_not_covered(*NOT_COVERED)
        .also_assuming(FIXED_RULE)
    )


# The two phases ---------------------------------------------------------------------------------------------------


@dataclass
class FirstPhase(TrainingRun):
    """`facts` say which first phase it is; they stay beside its model, for a run that goes on after it."""

    facts: dict[str, str] = field(kw_only=True)
    redaction: str = field(kw_only=True)
    of_both: Callable[[], Guarantee] = field(kw_only=True)
    """The promise of both phases: the budget of both is set aside before the first."""

    def charged(self) -> Guarantee:
        return self.of_both()

    def _settle(self) -> None:
        """Spend nothing yet: the second phase follows."""

    def _fingerprint(self) -> dict[str, object]:
        return {**super()._fingerprint(), **self.facts}

    def _finish(self) -> Guarantee:
        kept = json.dumps({"facts": self.facts, "redaction": self.redaction}, indent=2)
        (self.private / FIRST_FACTS).write_text(kept + "\n", encoding="utf-8")
        return super()._finish()


@dataclass
class SecondPhase(TrainingRun):
    """The private phase. Its card never claims more than both phases together keep."""

    first: First = field(kw_only=True)
    facts: dict[str, str] = field(kw_only=True)
    of_both: Callable[[], Guarantee] = field(kw_only=True)

    def charged(self) -> Guarantee:
        return self.of_both()

    def _fingerprint(self) -> dict[str, object]:
        return {**super()._fingerprint(), **self.facts}

    def promise(self) -> Guarantee:
        return check_composed(selective_guarantee(super().promise(), self.first), self.plan.records)


@dataclass
class TwoPhases:
    """Both phases of one model.

    load          the model to start from and its tokenizer: of the base model, or of a folder; strategy applied
    first_rows    redacted rows, or public ones
    redaction     its name on the card
    rule          what tells this redaction from any other: a digest of a word list, the name of a detector
    first_plan    without privacy for redacted and public text, private otherwise
    origin        what is known about the base model
    configuration the options that made the model, for its card
    """

    task: Task
    load: Callable[[Path | None], tuple[PreTrainedModel, PreTrainedTokenizerBase]]
    rows: Sequence[Row]
    first_rows: Sequence[Row]
    kind: FirstKind
    redaction: str
    first_plan: TrainingPlan
    plan: TrainingPlan
    first_settings: TrainingSettings
    settings: TrainingSettings
    folder: Path
    public: str = ""
    seed: int | None = None
    trials: int = 1
    warn: Callable[[str], None] = lambda message: None
    origin: Origin = field(default_factory=Origin)
    rule: str = ""
    configuration: Mapping[str, object] = field(default_factory=dict)
    device: torch.device | str = "cpu"
    charge: ReleaseCharge = field(default_factory=ReleaseCharge)

    def __post_init__(self) -> None:
        if (self.kind is FirstKind.PRIVATE) != self.first_plan.private:
            raise BadParameterError(
                "phase-without-guarantee", "the first phase is private exactly if it promises something"
            )
        if self.first_plan.private and self.plan.private:
            check_delta((self.first_plan.delta + self.plan.delta) * check_trials(self.trials), self.plan.records)
        if self.kind is FirstKind.PUBLIC and not self.public.strip():
            raise BadParameterError(
                "public-text-without-name",
                "name the public text of the first phase: only text known to be public may be used",
            )
        if self.plan.private and self.plan.adjacency is not needed_adjacency(self.kind, self.plan.adjacency):
            raise BadParameterError(
                "adjacency-not-accounted",
                "after a first phase on redacted text the second is accounted for replacing one record",
            )

    @property
    def working_folder(self) -> Path:
        """Where the first phase works; it moves into the private folder of the model when all is done."""
        return self.folder.with_name(f"{self.folder.name}.{FIRST_FOLDER}")

    def check_folder(self, *, resume: bool) -> None:
        begun = run_state(self.working_folder) is not RunState.ABSENT
        if resume and not begun:
            raise BadInputError(
                "nothing-to-resume",
                "there is no unfinished run in {folder}: start one without {option.resume}",
                folder=self.folder,
            )
        for place in (self.working_folder, self.folder):
            if not resume and (holds_something(place) or holds_something(private_folder(place))):
                hint = "go on with {option.resume}, or " if begun else ""
                raise BadInputError(
                    "folder-not-empty", "{folder} is not empty: " + hint + "give another folder", folder=place
                )

    @cached_property
    def facts(self) -> dict[str, str]:
        """The settings that must be the same for a run to go on: the promise of the second phase speaks of this first
        one."""
        return {
            "kind of first phase": self.kind.value,
            "redaction": self.rule or self.redaction,
            "public text": self.public,
            "text of the first phase": digest_of(self.first_rows),
            "starting model": self.first_settings.model,
        }

    def _check_first_phase(self) -> None:
        """A first phase that is finished must be the one that the card of the second will speak of."""
        place = self.working_folder
        if run_state(place) is not RunState.FINISHED:
            return  # not finished: its checkpoint is compared instead
        if run_state(self.folder) is RunState.FINISHED and not private_folder(place).exists():
            return  # all is done, and a part of the first phase has been put away already
        kept = _kept_facts(place)
        for part, value in self.facts.items():
            if kept["facts"].get(part) != value:
                raise BadInputError(
                    "another-run",
                    "the unfinished run in {folder} had another {part}: repeat its command, or start anew in "
                    "another folder",
                    folder=self.folder,
                    part=part,
                )
        self.redaction = str(kept["redaction"])

    def run(self, progress: Callable[[int, StepReport], None] | None = None, *, resume: bool = False) -> Guarantee:
        """Both phases; `progress` gets the number of the phase, 1 or 2."""
        self.check_folder(resume=resume)
        self._check_first_phase()
        finished = run_state(self.folder) is RunState.FINISHED
        guarantee = read_guarantee(self.folder) if finished else self._second(self._first(progress), progress)
        kept = private_folder(self.folder) / FIRST_FOLDER
        if private_folder(self.working_folder).exists():
            shutil.move(private_folder(self.working_folder), private_folder(kept))
        shutil.move(self.working_folder, kept)
        return guarantee

    def promise_of_both(self) -> Guarantee:
        """The guarantee of both phases together, before the first of them."""

        def promised(plan: TrainingPlan) -> Guarantee:
            return plan.guarantee(
                steps=plan.steps, secure=self.seed is None, what="selective training", parameters={}, trials=self.trials
            )

        paid = promised(self.first_plan) if self.kind is FirstKind.PRIVATE else None
        return selective_guarantee(promised(self.plan), First(self.kind, self.redaction, self.public, paid))

    def _first(self, progress: Callable[[int, StepReport], None] | None) -> First:
        place = self.working_folder
        state = run_state(place)
        if state is not RunState.FINISHED:
            model, tokenizer = self.load(None)
            origin = replace(self.origin, public=self.public) if self.kind is FirstKind.PUBLIC else self.origin
            run = FirstPhase(
                self.task, model, tokenizer, self.first_rows, self.first_plan, self.first_settings, place, self.seed,
                self.trials, self.warn, origin, facts=self.facts, redaction=self.redaction, device=self.device,
                charge=self.charge, of_both=self.promise_of_both,
            )  # fmt: skip
            unfinished = state is RunState.UNFINISHED
            promised = run.run(None if progress is None else lambda p: progress(1, p), resume=unfinished)
        else:
            promised = read_guarantee(place)
        paid = promised if self.kind is FirstKind.PRIVATE else None
        return First(self.kind, self.redaction, self.public, paid)

    def _second(self, first: First, progress: Callable[[int, StepReport], None] | None) -> Guarantee:
        model, tokenizer = self.load(self.working_folder)
        run = SecondPhase(
            self.task, model, tokenizer, self.rows, self.plan, self.settings, self.folder, self.seed, self.trials,
            self.warn, self.origin, self.configuration, first=first, facts=self.facts, device=self.device,
            charge=self.charge, of_both=self.promise_of_both,
        )  # fmt: skip
        unfinished = run_state(self.folder) is RunState.UNFINISHED
        return run.run(None if progress is None else lambda p: progress(2, p), resume=unfinished)


def _kept_facts(folder: Path) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads((private_folder(folder) / FIRST_FACTS).read_text(encoding="utf-8"))
        return {"facts": dict(kept["facts"]), "redaction": str(kept["redaction"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            "phase-facts-missing",
            "{folder} does not say how its first phase was made, so nothing can be promised after it: start anew in "
            "another folder",
            folder=folder,
        ) from error
