"""The options of every attack on something trained: known members, canaries with their coins, and the claim."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.auditing.models.bounds import Split
from tacit.auditing.models.claimed import ModelClaim
from tacit.auditing.models.one_run import check_confidence
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import AuditSeed, Canaries, Confidence, Format, UsualColumn
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import Ability

Reference = Annotated[
    Source,
    Field(description="What was made in the same way without these texts, to compare with."),
    Option(Group.MODEL, metavar="FILE|FOLDER"),
]
NEIGHBORS = {"add-remove": Adjacency.ADD_REMOVE, "replace-one": Adjacency.REPLACE_ONE}


class AttackedTraining(Config):
    """Training texts as far as they are known, and the claim about what was made of them."""

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
    format: Format = None
    split: Annotated[
        Split,
        Field(
            description="How it was decided which texts are members: by a fair coin for each (coins), by a random "
            "split of one pool (random), or in another way. Only the first two let a claim be refuted."
        ),
        Option(Group.DATA),
    ] = "unknown"
    canaries: Canaries = None
    claim_epsilon: Annotated[
        float | None,
        Field(description="The claimed epsilon; by default that of the card."),
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
            need
            for source in (self.members, self.non_members)
            if source is not None
            for need in needs_of_source(source, self.format)
        ]

    @model_validator(mode="after")
    def _two_sides_or_canaries(self) -> Self:
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
