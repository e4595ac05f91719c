"""The audit of a trained model: attacks that ask how much it gives away about its training texts.

report = tacit.audit_model("model/", members="train.csv", non_members="held-out.csv", split="random")
print(report)
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.auditing.models.attacks import AUTOENCODER, WRITER, ModelAttacks, load_scorers
from tacit.auditing.models.bounds import BoundSettings
from tacit.auditing.models.canary_files import load_canaries
from tacit.auditing.models.claimed import ModelClaim, claim_on_card
from tacit.auditing.models.members import read_members
from tacit.auditing.models.trained import role_columns
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.audit.attacked import AttackedTraining, Reference
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import Device, LabelColumn, Model
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import Source
from tacit.needs import BLEU, MODELS, Ability
from tacit.progress import WorkProgress, steps_of
from tacit.report import Report


class ModelAuditConfig(AttackedTraining):
    """A model, what is known about its training texts, and what is claimed about it."""

    job: ClassVar[str] = "audit model"

    model: Annotated[
        Model[Source],
        Field(description="A saved model, or its name on the model hub."),
        Varied(positional=True, metavar="FOLDER"),
    ]
    label_column: LabelColumn[str | None] = None
    reference: Annotated[
        Reference,
        Field(description="A similar model that saw neither file, to compare losses with."),
        Varied(metavar="FOLDER"),
    ] = None
    extract: Annotated[
        int,
        Field(description="Let the model write N texts, and look them up."),
        Option(Group.MEASURES, metavar="N"),
    ] = 0
    prompts: Annotated[
        tuple[str, ...],
        Field(description="How the written texts begin; may be repeated. By default, with nothing."),
        Option(Group.MEASURES),
    ] = ()
    device: Device = "auto"

    def needs(self) -> list[Ability]:
        return [*([MODELS] if isinstance(self.model, str | Path) else []), BLEU, *super().needs()]

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        if self.extract < 0:
            raise BadParameterError(
                "bad-option",
                "{option.extract} takes a number of texts to write, not {count}",
                count=self.extract,
            )
        if self.extract and self.members is None:
            raise BadInputError(
                "extraction-without-members",
                "{option.extract} looks up what the model writes: give {option.members} and {option.non_members}",
            )
        if self.prompts and not self.extract:
            raise BadParameterError(
                "prompt-without-extraction",
                "{option.prompts} begins the texts that {option.extract[N]} lets the model write: give "
                "{option.extract} too",
            )
        return self


@on_its_device
def run(config: ModelAuditConfig, progress: WorkProgress | None = None, *, figures: bool = False) -> Report:
    """The report of the attacks, with a lower bound on epsilon beside the claimed one. With `figures`, drawings too."""
    claim = config.stated_claim() or claim_on_card(config.model)
    report = Report(f"Audit of the model {_name(config.model)}", facts=_facts(config, claim))
    sides = None
    if config.members is not None:
        sides = read_members(
            config.members, config.non_members, config.column, config.label_column, config.format,
            role_columns(config.model),
        )  # fmt: skip
        report.facts.update({"members": str(sides[0]), "non-members": str(sides[1])})
    canaries = None if config.canaries is None else load_canaries(config.canaries)
    scorer, reference = load_scorers(config.model, config.reference)
    report.facts["kind of model"] = scorer.kind
    if config.extract and scorer.kind != WRITER:
        raise BadInputError(
            "model-does-not-write",
            "{name} is a {kind}, which does not write texts by itself: leave out {option.extract}, or give a causal "
            "language model",
            name=scorer.name,
            kind=scorer.kind,
        )
    settings = BoundSettings(claim, config.confidence, config.seed)
    attacks = ModelAttacks(scorer, reference, settings, steps_of(progress), report.facts)
    if sides is not None:
        report.sections += attacks.membership(*sides, config.split, figures=figures)
    if canaries is not None:
        report.sections += attacks.canaries(canaries)
    if sides is not None and config.extract:
        report.sections.append(attacks.extraction(*sides, config.extract, config.prompts))
    if sides is not None and scorer.kind == AUTOENCODER:
        report.sections.append(attacks.memorization(*sides))
    return report


def audit_model(
    model: object, *, progress: WorkProgress | None = None, figures: bool = False, **options: Any
) -> Report:
    """The report of attacks on a model: a folder, a hub name, or a function from texts to losses; members and
    non-members are files or data in memory, options as in `ModelAuditConfig`.

    >>> import tacit
    >>> known, unknown = [f"text {i}" for i in range(0, 80, 2)], [f"text {i}" for i in range(1, 80, 2)]
    >>> def losses(texts):  # a model that knows its training texts by heart
    ...     return [0.0 if text in known else 1.0 for text in texts]
    >>> report = tacit.audit_model(losses, members=known, non_members=unknown)
    >>> report.light.value
    'red'
    """
    return run(ModelAuditConfig(model=model, **options), progress, figures=figures)


def _name(model: object) -> str:
    return Path(model).name if isinstance(model, str | Path) else str(getattr(model, "__name__", "in memory"))


def _facts(config: ModelAuditConfig, claim: ModelClaim | None) -> dict[str, object]:
    return {
        "model": _name(config.model),
        "reference": None if config.reference is None else _name(config.reference),
        "confidence": config.confidence,
        "seed": config.seed,
        "claimed epsilon": None if claim is None else claim.epsilon,
        "claimed delta": None if claim is None else claim.delta,
        "claim for": None if claim is None else claim.adjacency.value,
        "claim from": None if claim is None else claim.source,
    }
