"""The audit of a trained model: attacks that ask how much it gives away about its training texts.

report = tacit.audit_model("model/", members="train.csv", non_members="held-out.csv", split="random")
print(report)
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.auditing.models.attacks import AUTOENCODER, WRITER, ModelAttacks, load_scorers
from tacit.auditing.models.bounds import BoundSettings, Split
from tacit.auditing.models.canaries import load_canaries
from tacit.auditing.models.claimed import ModelClaim, claim_on_card
from tacit.auditing.models.members import read_members
from tacit.auditing.models.one_run import check_confidence
from tacit.auditing.models.trained import role_columns
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import AuditSeed, Canaries, Confidence, Format, LabelColumn, Model, UsualColumn
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import BLEU, MODELS, Ability
from tacit.progress import WorkProgress, steps_of
from tacit.report import Report

NEIGHBORS = {"add-remove": Adjacency.ADD_REMOVE, "replace-one": Adjacency.REPLACE_ONE}


class ModelAuditConfig(Config):
    """A model, what is known about its training texts, and what is claimed about it."""

    job: ClassVar[str] = "audit model"

    model: Annotated[
        Model[Source],
        Field(description="A saved model, or its name on the model hub."),
        Varied(positional=True, metavar="FOLDER"),
    ]
    members: Annotated[
        Source,
        Field(description="Texts the model was trained on."),
        Option(Group.DATA, metavar="FILE", private=True),
    ] = None
    non_members: Annotated[
        Source,
        Field(description="Texts of the same kind that it was not trained on."),
        Option(Group.DATA, metavar="FILE", private=True),
    ] = None
    column: UsualColumn = None
    label_column: LabelColumn[str | None] = None
    format: Format = None
    split: Annotated[
        Split,
        Field(
            description="How it was decided which texts are members: by a fair coin for each (coins), by a random "
            "split of one pool (random), or in another way. Only the first two let a claim be refuted."
        ),
        Option(Group.DATA),
    ] = "unknown"
    reference: Annotated[
        Source,
        Field(description="A similar model that saw neither file, to compare losses with."),
        Option(Group.MODEL, metavar="FOLDER"),
    ] = None
    canaries: Canaries = None
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
    claim_epsilon: Annotated[
        float | None,
        Field(description="The claimed epsilon; by default that of the card.json."),
        Option(Group.PRIVACY),
    ] = None
    claim_delta: Annotated[float | None, Field(description="The claimed delta."), Option(Group.PRIVACY)] = None
    claim_neighbors: Annotated[
        Literal["add-remove", "replace-one"],
        Field(description="Neighbors of the claim, if it does not come from a card."),
        Option(Group.PRIVACY),
    ] = "add-remove"
    confidence: Confidence = 0.95
    seed: AuditSeed = 0

    def needs(self) -> list[Ability]:
        return [
            *([MODELS] if isinstance(self.model, str | Path) else []),
            BLEU,
            *(need for source in (self.members, self.non_members) if source is not None
              for need in needs_of_source(source, self.format)),
        ]  # fmt: skip

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        check_confidence(self.confidence)
        if self.members is None and self.non_members is not None:
            raise BadInputError(
                "members-missing",
                "membership is a comparison and needs both sides: give {option.members}, a file of texts that the "
                "model was trained on",
            )
        if self.non_members is None and self.members is not None:
            raise BadInputError(
                "non-members-missing",
                "membership is a comparison and needs both sides: give {option.non_members}, a file of texts that the "
                "model was not trained on",
            )
        if self.members is None and self.canaries is None:
            raise BadInputError(
                "nothing-to-audit-with",
                "say what to audit with: {option.members} and {option.non_members}, or {option.canaries}",
            )
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
        self.stated_claim()
        return self

    def stated_claim(self) -> ModelClaim | None:
        """The claim that these options state; None if they leave it to the card."""
        if self.claim_epsilon is None and self.claim_delta is None:
            return None
        if self.claim_epsilon is None:
            raise BadParameterError(
                "claimed-delta-alone",
                "{option.claim_delta} belongs to {option.claim_epsilon}: give both, or neither to use the card.json",
            )
        if self.claim_delta is None:
            raise BadParameterError(
                "claimed-epsilon-alone",
                "a claimed epsilon has a delta: give {option.claim_delta}, which is 0 for pure privacy",
            )
        neighbors = NEIGHBORS[self.claim_neighbors]
        return ModelClaim(self.claim_epsilon, self.claim_delta, neighbors, "the options of this audit")


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
