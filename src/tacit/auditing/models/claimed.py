"""The claim about a trained model: from the user who audits it, or from the card beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Notion

CARD = "card.json"
TESTABLE = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)


@dataclass(frozen=True)
class ModelClaim:
    """An epsilon and delta for the training records of a model, and where the claim comes from."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    source: str

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and 0 <= self.delta < 1):
            raise BadParameterError(
                "impossible-claim",
                "a claim has epsilon >= 0 and 0 <= delta < 1, not {epsilon:g} and {delta:g}",
                epsilon=self.epsilon,
                delta=self.delta,
            )


def claim_on_card(model: object) -> ModelClaim | None:
    """The claim of the card in the folder of a model; None without a card, or if the card promises nothing."""
    return claim_of_card(Path(model) / CARD, f"the {CARD} of the model") if isinstance(model, str | Path) else None


def claim_of_card(path: Path, source: str) -> ModelClaim | None:
    """The claim of a card; None if there is none, or if it promises nothing."""
    if not path.is_file():
        return None
    guarantee = Card.of_file(path).guarantee
    if guarantee.notion is Notion.NONE:
        return None
    if guarantee.notion not in (Notion.PURE, Notion.APPROXIMATE) or guarantee.adjacency not in TESTABLE:
        raise BadInputError(
            "claim-cannot-be-tested",
            "the card promises {notion} for {neighbors}, which this attack cannot test: give {option.claim_epsilon} "
            "and {option.claim_delta} for the training records",
            notion=guarantee.notion.label,
            neighbors=guarantee.adjacency.value,
        )
    return ModelClaim(guarantee.exponent(), guarantee.delta, guarantee.adjacency, source)
