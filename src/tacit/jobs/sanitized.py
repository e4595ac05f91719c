"""A masked language model that has seen rewritten text before it is fine-tuned on some (Yue et al. 2021).

model = tacit.jobs.sanitized.pretrain("wiki.txt", public="WikiText-2", epsilon=14, output="aware")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.catalog import build, find, needs_of_mechanism
from tacit.devices import device_named
from tacit.documents.pretraining.corpus import read_public
from tacit.errors import BadParameterError, require
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Batch,
    Device,
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
    Steps,
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
    from tacit.training.tasks import Task


class SanitizedConfig(Config):
    """Public text, the mechanism that rewrites it, and the model that learns to guess the original words."""

    job: ClassVar[str] = "pretrain sanitized"

    text: Annotated[PublicText, Varied(metavar="PUBLIC_TEXT")]
    output: Annotated[Output[Path], Field(description="Folder for the model.")]
    epsilon: Annotated[
        TrainingEpsilon[float | None], Field(description="The budget that the private texts will have.")
    ] = None
    public: PublicName = None
    model: Annotated[
        Model[str], Field(description="'minilm', a folder, or a name on the hub; an encoder with a mask.")
    ] = "minilm"
    mechanism: Annotated[MechanismName[str], Field(description="A word mechanism; see 'tacit mechanisms'.")] = "santext"
    vectors: Vectors = None
    options: MechanismOptions = Field(default_factory=dict)
    masking: Annotated[
        Literal["aware", "plain"],
        Field(
            description="What surrounds the words to guess: 'aware', rewritten text; 'plain', the text as it is, to "
            "compare with."
        ),
        Option(Group.TRAINING),
    ] = "aware"
    length: Length = 128
    epochs: SomeEpochs = 1.0
    steps: Annotated[Steps[int | None], Field(ge=1, description="Number of steps, in place of passes.")] = None
    batch: Annotated[
        Batch,
        Field(description="Texts of a step, on average."),
        Varied(old_names=("batch_size",)),
    ] = 32
    learning_rate: Annotated[LearningRate[float], Field(description="The largest learning rate.")] = 5e-5
    seed: PublicSeed = 0
    resume: Resume = False
    device: Device = "auto"

    @model_validator(mode="after")
    def _rewrites_what_it_is_given(self) -> Self:
        if self.masking == "plain" and (self.epsilon is not None or self.vectors is not None or self.options):
            raise BadParameterError(
                "plain-with-mechanism",
                "{option.masking[plain]} rewrites nothing: leave out {option.epsilon}, {option.vectors} and "
                "{option.options}",
            )
        return self

    def needs(self) -> list[Ability]:
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        rewriting = needs_of_mechanism(self.mechanism, {**self.options, **vectors}) if self.masking == "aware" else []
        return [*needs_of_encoder(self.model), *rewriting]

    @property
    def rewritten_by(self) -> str:
        """The mechanism and its budget, in the words of a model's settings."""
        epsilon = () if self.epsilon is None else (f"epsilon {exact(self.epsilon)}",)
        return ", ".join([self.mechanism, *epsilon, self.vectors or "default"])


@dataclass(frozen=True)
class SanitizedModel:
    """The folder of the model, the losses of its steps, and the share of the words that rewriting left as they were."""

    folder: Path
    losses: tuple[float, ...]
    words_kept: float = 1.0

    def __str__(self) -> str:
        if not self.losses:
            return f"model in {self.folder}"
        part = max(1, len(self.losses) // 10)
        first, last = (sum(some) / part for some in (self.losses[:part], self.losses[-part:]))
        return f"model in {self.folder}: loss {first:.3f} in the first tenth of the steps, {last:.3f} in the last"


def run(
    config: SanitizedConfig,
    progress: WorkProgress | None = None,
    warn: Callable[[str], None] = lambda message: None,
    *,
    model_name: str | None = None,
) -> SanitizedModel:
    """The model, trained on public text and saved in its folder.

    model_name  what cards call the model to start from, where its folder would say nothing to their readers
    """
    corpus = read_public(config.text, config.public)
    torch = require("torch", extra="documents", purpose="training a model")
    from tacit.training.log import logged_losses
    from tacit.training.models import load_model, model_folder
    from tacit.training.run import TrainingRun, TrainingSettings

    task, rows = examples(config, corpus.texts, progress)
    check_batch(len(rows), config.batch)
    plan = TrainingPlan.without_privacy(records=len(rows), batch=config.batch, epochs=config.epochs)
    task.learn(rows)
    torch.manual_seed(config.seed)
    network, tokenizer = load_model(task, config.model)
    training = TrainingRun(
        task, network, tokenizer, rows,
        plan=plan if config.steps is None else replace(plan, steps=config.steps),
        settings=TrainingSettings(
            learning_rate=config.learning_rate, model=model_name or config.model, physical=config.batch
        ),
        folder=config.output, seed=config.seed, warn=warn,
        origin=replace(starting_weights(model_folder(config.model)), public=corpus.name),
        configuration=config.identity(), device=device_named(config.device),
    )  # fmt: skip

    def stepped(now: StepReport) -> None:
        if progress is not None:
            progress(f"step {now.step:,}, loss {now.facts.loss:.3f}", now.step, now.steps)

    training.run(stepped, resume=config.resume)
    return SanitizedModel(config.output, tuple(logged_losses(config.output)), words_kept(rows))


def examples(
    config: SanitizedConfig, texts: Sequence[str], progress: WorkProgress | None = None
) -> tuple[Task, list[dict[str, str]]]:
    """The task that is learned from public texts, and its rows: words as they were and as rewritten, or whole texts."""
    from tacit.training.tasks import MaskedLanguage, SanitizedMasking, sanitized_rows
    from tacit.training.tasks.sanitized import check_word_level

    if config.masking == "plain":
        return MaskedLanguage(length=config.length), [{"text": text} for text in texts if text.strip()]
    check_word_level(find(config.mechanism))
    mechanism = build(config.mechanism, mechanism_options(config.epsilon, config.vectors, config.options))

    def rewritten(done: int, total: int) -> None:
        if progress is not None:
            progress("rewriting the public text", done, total)

    # The text is public, so its noise may be repeatable: a resumed run has to see the same words.
    rows = sanitized_rows(texts, mechanism, noise.Source.from_test_seed(config.seed), rewritten)
    return SanitizedMasking(length=config.length, mechanism=config.rewritten_by), rows


def words_kept(rows: Sequence[Mapping[str, str]]) -> float:
    """The share of the words that rewriting left as they were; 1 where nothing was rewritten.

    >>> words_kept([{"text": "a\\nfilm", "sanitized": "a\\nbook"}])
    0.5
    """
    pairs = [
        pair
        for row in rows
        for pair in zip(row["text"].split("\n"), row.get("sanitized", row["text"]).split("\n"), strict=True)
    ]
    return sum(word == other for word, other in pairs) / max(1, len(pairs))


def pretrain(
    text: object,
    *,
    output: str | Path,
    public: str,
    epsilon: float | None = None,
    progress: WorkProgress | None = None,
    **options: Any,
) -> SanitizedModel:
    """A model of rewritten public text, from a file or data in memory; options as in `SanitizedConfig`."""
    return run(SanitizedConfig(text=text, output=Path(output), public=public, epsilon=epsilon, **options), progress)
