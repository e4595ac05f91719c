"""Whether the gradients of a model can be clipped exactly, before anything is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Varied
from tacit.jobs.fields import GradientEngine, Model, Strategy, Task
from tacit.jobs.training.options import needs_of_model
from tacit.needs import Ability

if TYPE_CHECKING:
    from tacit.jobs.training.records import GradientCheck


class CheckConfig(Config):
    """A model, and what would be trained of it."""

    job: ClassVar[str] = "train check"

    model: Annotated[
        Model[str],
        Field(description="'minilm', a folder, or a name on the model hub."),
        Varied(positional=True, metavar="MODEL"),
    ]
    task: Annotated[
        Task[str],
        Field(description="What it would be trained for: classify, tag, answer, write, fill …"),
    ] = "classify"
    strategy: Annotated[Strategy[str], Field(description="What would be trained.")] = "full"
    gradient_engine: GradientEngine = "auto"

    def needs(self) -> list[Ability]:
        return needs_of_model(self.model, None, self.strategy, self.gradient_engine)


def check(config: CheckConfig) -> GradientCheck:
    """How exactly the clipped gradients of a model are those of one example at a time; an error names the weight whose
    gradient cannot be bounded."""
    from tacit.jobs.training.records import check_gradients

    return check_gradients(config)
