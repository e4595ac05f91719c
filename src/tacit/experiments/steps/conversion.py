"""`conversion`: what a mechanism promises for a whole document, or why nothing is proven (`experiments.conversion`).

No text is read and nothing is drawn. "converted" is 1 where a plain epsilon for any two documents follows from the
promise of the mechanism, and 0 where it does not; the card then says why. "epsilon of the mechanism" is the one that
is spent on each unit (token, or document) so that a document of `tokens` tokens gets `epsilon`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from tacit import catalog
from tacit.card import Card, ReleaseFacts
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.experiments.config import Parameters
from tacit.experiments.conversion import calibrated, of_document
from tacit.experiments.raw import read_json, write_json
from tacit.experiments.steps import Kind, Progress
from tacit.experiments.steps.rewrite import has_epsilon
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit, VoidReason
from tacit.mechanism import Mechanism


class Conversion(Parameters):
    """A mechanism, the plain epsilon a document shall have, and how many tokens of a text are read."""

    mechanism: str
    epsilon: float = Field(gt=0)
    document_tokens: int = Field(ge=1)
    options: dict[str, str | int | float | bool] = Field(default={})


def run(parameters: Conversion, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    nothing = ReleaseFacts(rows=0, documents=0, units=0, longest_document=0, longest_row=0)
    try:
        mechanism = calibrated(parameters.mechanism, parameters.options, parameters.epsilon, parameters.document_tokens)
        promise = of_document(mechanism.guarantee(secure=True), parameters.document_tokens)
        converted = {"converted": True, "epsilon": mechanism.epsilon, "document epsilon": promise.exponent(),
                 "delta": promise.delta}  # fmt: skip
    except NoGuaranteeError as error:
        cls = catalog.find(parameters.mechanism)
        promise = without_conversion(cls, str(error))
        converted = {"converted": False}
    write_json(folder / "conversion.json", converted)
    write_json(folder / "card.json", Card(promise, nothing).to_dict())
    progress(1, 1)


def without_conversion(mechanism: type[Mechanism], reason: str) -> Guarantee:
    """A card without a promise for documents, and why."""
    return Guarantee(
        notion=Notion.NONE, epsilon=float("inf"), unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO,
        mechanism=f"{mechanism.title} ({mechanism.name}; {mechanism.paper})",
        void=f"no conversion to whole documents is proven: {reason}", void_reason=VoidReason.NO_CONVERSION,
    )  # fmt: skip


def score(folder: Path) -> dict[str, float]:
    converted = read_json(folder / "conversion.json")
    names = {"epsilon": "epsilon of the mechanism", "document epsilon": "document epsilon", "delta": "delta"}
    return {"converted": float(converted["converted"])} | {
        shown: float(converted[name]) for name, shown in names.items() if name in converted
    }


def check(parameters: Conversion, inputs: frozenset[str] = frozenset()) -> None:
    cls = catalog.find(parameters.mechanism)
    if not has_epsilon(cls):
        raise BadInputError(
            "mechanism-without-epsilon",
            "the mechanism '{mechanism}' has no epsilon to be converted: leave it out",
            mechanism=parameters.mechanism,
        )
    catalog.build(parameters.mechanism, {**parameters.options, "epsilon": parameters.epsilon})


KIND = Kind(
    "conversion", 2, Conversion, run, score, {}, check, epsilon=lambda parameters: "per document",
    measures=("converted", "epsilon of the mechanism", "document epsilon"),
    further=("delta",),
)  # fmt: skip
