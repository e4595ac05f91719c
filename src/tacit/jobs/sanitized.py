"""A masked language model that has seen rewritten text before it is fine-tuned on some (Yue et al. 2021).

model = tacit.jobs.sanitized.pretrain("wiki.txt", public="WikiText-2", epsilon=14, output="aware")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from tacit.catalog import build, find, needs_of_mechanism
from tacit.documents.pretraining.corpus import read_public
from tacit.errors import require
from tacit.jobs.config import Config, Varied
from tacit.jobs.fields import (
    Batch,
    LearningRate,
    Length,
    MechanismName,
    MechanismOptions,
    Model,
    Output,
    PublicName,
    PublicSeed,
    PublicText,
    Resume,
    SomeEpochs,
    TrainingEpsilon,
    Vectors,
)
from tacit.jobs.training.planning import check_batch
from tacit.jobs.values import mechanism_options
from tacit.needs import Ability, needs_of_encoder
from tacit.noise import source as noise
from tacit.progress import WorkProgress
from tacit.rounding import exact
from tacit.training.origin import starting_weights
from tacit.training.plan import TrainingPlan

if TYPE_CHECKING:
    from tacit.training.run import StepReport


class SanitizedConfig(Config):
    """Public text, the mechanism that rewrites it, and the model that learns to guess the original words."""

    job: ClassVar[str] = "pretrain sanitized"

    text: Annotated[PublicText, Varied(metavar="PUBLIC_TEXT")]
    output: Annotated[Output[Path], Field(description="Folder for the model.")]
    epsilon: Annotated[TrainingEpsilon[float], Field(description="The budget that the private texts will have.")]
    public: PublicName = None
    model: Annotated[
        Model[str], Field(description="'minilm', a folder, or a name on the hub; an encoder with a mask.")
    ] = "minilm"
    mechanism: Annotated[MechanismName[str], Field(description="A word mechanism; see 'tacit mechanisms'.")] = "santext"
    vectors: Vectors = None
    options: MechanismOptions = Field(default_factory=dict)
    length: Length = 128
    epochs: SomeEpochs = 1.0
    batch: Annotated[
        Batch,
        Field(description="Texts of a step, on average."),
        Varied(old_names=("batch_size",)),
    ] = 32
    learning_rate: Annotated[LearningRate[float], Field(description="The largest learning rate.")] = 5e-5
    seed: PublicSeed = 0
    resume: Resume = False

    def needs(self) -> list[Ability]:
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return [
            *needs_of_encoder(self.model),
            *needs_of_mechanism(self.mechanism, {**self.options, **vectors}),
        ]


@dataclass(frozen=True)
class SanitizedModel:
    """The folder of the model, and the losses of its steps."""

    folder: Path
    losses: tuple[float, ...]

    def __str__(self) -> str:
        if not self.losses:
            return f"model in {self.folder}"
        part = max(1, len(self.losses) // 10)
        first, last = (sum(some) / part for some in (self.losses[:part], self.losses[-part:]))
        return f"model in {self.folder}: loss {first:.3f} in the first tenth of the steps, {last:.3f} in the last"


def run(
    config: SanitizedConfig, progress: WorkProgress | None = None, warn: Callable[[str], None] = lambda message: None
) -> SanitizedModel:
    """The model, trained on rewritten public text and saved in its folder."""
    corpus = read_public(config.text, config.public)
    torch = require("torch", extra="documents", purpose="training a model")
    from tacit.training.models import load_model, model_folder
    from tacit.training.run import TrainingRun, TrainingSettings
    from tacit.training.tasks import SanitizedMasking, sanitized_rows
    from tacit.training.tasks.sanitized import check_word_level

    check_word_level(find(config.mechanism))
    mechanism = build(config.mechanism, mechanism_options(config.epsilon, config.vectors, config.options))

    def rewritten(done: int, total: int) -> None:
        if progress is not None:
            progress("rewriting the public text", done, total)

    # The text is public, so its noise may be repeatable: a resumed run has to see the same words.
    rows = sanitized_rows(corpus.texts, mechanism, noise.Source.from_test_seed(config.seed), rewritten)
    check_batch(len(rows), config.batch)
    plan = TrainingPlan.without_privacy(records=len(rows), batch=config.batch, epochs=config.epochs)
    task = SanitizedMasking(
        length=config.length,
        mechanism=f"{config.mechanism}, epsilon {exact(config.epsilon)}, {config.vectors or 'default'}",
    )
    task.learn(rows)
    torch.manual_seed(config.seed)
    network, tokenizer = load_model(task, config.model)
    settings = TrainingSettings(learning_rate=config.learning_rate, model=config.model, physical=config.batch)
    training = TrainingRun(
        task, network, tokenizer, rows, plan, settings, config.output, seed=config.seed, warn=warn,
        origin=replace(starting_weights(model_folder(config.model)), public=corpus.name),
        configuration=config.identity(),
    )  # fmt: skip
    losses: list[float] = []

    def stepped(now: StepReport) -> None:
        losses.append(now.facts.loss)
        if progress is not None:
            progress(f"step {now.step:,}, loss {losses[-1]:.3f}", now.step, now.steps)

    training.run(stepped, resume=config.resume)
    return SanitizedModel(config.output, tuple(losses))


def pretrain(
    text: object,
    *,
    output: str | Path,
    public: str,
    epsilon: float,
    progress: WorkProgress | None = None,
    **options: Any,
) -> SanitizedModel:
    """A model of rewritten public text, from a file or data in memory; options as in `SanitizedConfig`."""
    return run(SanitizedConfig(text=text, output=Path(output), public=public, epsilon=epsilon, **options), progress)
