"""The settings of a training besides data, model and plan."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import BadParameterError, check_choice
from tacit.precision import TrainingPrecision
from tacit.training.optimizers import OPTIMIZERS, SCHEDULES
from tacit.training.public_gradients import PUBLIC_KINDS


@dataclass(frozen=True)
class TrainingSettings:
    """The settings of a training besides data, model and plan. None of them may depend on the private data.

    precision   "fast": 16 bits for the layers below the lowest trained one, which are computed once
                (`tacit.training.frozen`); "bf16": for all layers, in every step (`tacit.training.sixteen`)
    gradient_checkpointing   compute layers again on the way back instead of keeping them
    physical    how many records are worked on at a time; 0: as many as memory allows (`tacit.training.physical`)
    noise_generator   "secure", or "device" for that of the graphics card (`tacit.training.device_noise`)
    public_gradients   how gradients of public rows help, or "" (`tacit.training.public_gradients`)
    average     share of the steps, the last ones, over whose weights the saved model is the mean; None: the last
                weights (`tacit.training.average`)
    """

    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "linear"
    weight_decay: float = 0.0
    clipping: str = "flat"
    bound: float = 2.0
    engine: str = "auto"
    physical: int = 32
    checkpoint_every: int = 100
    tensorboard: bool = False
    strategy: str = "full"
    model: str = ""
    precision: TrainingPrecision = "float32"
    public_gradients: str = ""
    gradient_checkpointing: bool = False
    noise_generator: str = "secure"
    average: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.optimizer, OPTIMIZERS, code="unknown-optimizer", what="optimizer")
        check_choice(self.schedule, SCHEDULES, code="unknown-schedule", what="schedule")
        kinds = ("", *PUBLIC_KINDS)
        check_choice(self.public_gradients, kinds, code="unknown-public-gradients", what="use of public gradients")
        if not self.learning_rate > 0:
            raise BadParameterError(
                "impossible-learning-rate",
                "the learning rate must be positive, not {learning_rate}",
                learning_rate=self.learning_rate,
            )
        if self.average is not None and not 0 < self.average <= 1:
            raise BadParameterError(
                "impossible-average",
                "weights are averaged over a share of the steps, above 0 and at most 1, not {share}: give 0.5 for the "
                "second half ({option.average[0.5]})",
                share=self.average,
            )
        generators = ("secure", "device")
        check_choice(self.noise_generator, generators, code="unknown-noise-generator", what="generator of noise")
        if self.physical < 0:
            raise BadParameterError(
                "impossible-count",
                "at least 1 record is worked on at a time (physical), not {count}",
                count=self.physical,
            )
