"""The base of mechanisms that release one vector for a whole text, made of its projection on public directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from tacit.arrays import Floats
from tacit.embeddings.base import VectorMechanism
from tacit.embeddings.projection import PublicProjection
from tacit.encoders import encoder_needs
from tacit.guarantee import Guarantee, Notion
from tacit.needs import Ability
from tacit.parameters import parameter


def needs_of_encoder_value(value: str) -> list[Ability]:
    """The abilities that must be installed for an encoder that a parameter names."""
    return encoder_needs(value) if value else []


@dataclass(kw_only=True, eq=False)
class ProjectedMechanism(VectorMechanism):
    """Parameters of mechanisms on projected sentence vectors.

    encoder      sentence encoder: "static" (the default, without torch), "minilm", a folder, or a name on the hub
    dimensions   how many directions of public text are kept: few for single texts, more for many together
    public       a file of public texts of your kind, whose directions are kept; by default sentences of Tacit's pools
    """

    encoder: str = parameter("static", service_values=("static", "minilm"), needs=needs_of_encoder_value)
    dimensions: int = parameter(64, low=1, high=4096)
    public: str | None = None
    batch_size: int = parameter(64, low=1, service_most=256)

    model_needed: ClassVar[str] = "static encoder (included)"
    block_characters: ClassVar[int] = 250_000

    @cached_property
    def projection(self) -> PublicProjection:
        return PublicProjection(self.encoder, self.dimensions, self.public, self.batch_size, self.device)

    @property
    def dimension(self) -> int:
        return self.dimensions

    @property
    def reader(self) -> tuple[Any, int] | None:
        return self.projection.reader

    def load_public(self) -> None:
        self.projection.load()

    def clean_vectors(self, texts: Sequence[str]) -> Floats:
        return self.projection.apply(texts)

    def projected_promise(self, notion: Notion, epsilon: float, **more: Any) -> Guarantee:
        """A guarantee with what is the same for all of these mechanisms filled in."""
        shown = {
            **self._shown_parameters(),
            "encoder": Path(self.encoder).name,
            "directions digest": self.projection.digest,
            **more.pop("shown", {}),
        }
        shown.pop("public", None)
        return self._promise(
            notion,
            epsilon,
            parameters=shown,
            not_covered=(
                "labels and other columns that are left beside the vector as they are",
                *more.pop("not_covered", ()),
            ),
            assumptions=(
                *self.projection.assumptions(),
                *more.pop("assumptions", ()),
                "one released vector for each text; a text that is embedded again spends its budget again",
            ),
            provenance=self.projection.provenance(),
            **more,
        )
