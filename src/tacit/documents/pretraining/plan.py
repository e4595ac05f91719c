"""How a model is trained on public text: steps, rates, and the noise it learns to stand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import BadParameterError


@dataclass(frozen=True, kw_only=True)
class PretrainingPlan:
    """The plan of a pretraining.

    steps            batches to learn from
    batch_size       texts of a batch
    learning_rate    largest rate: it rises over the first 5 % of the steps, stays there while the noise grows, and
                     falls to a hundredth on a cosine
    evaluate_every   steps between two looks at the held-out texts, each followed by a checkpoint
    patience         looks without improvement before training stops early
    held_out         texts kept out of training, to measure on
    plain_share      share of the texts shown in lower case without punctuation, for input of that style
    mixed_share      share of the texts in which some pieces are taken from another text: what has never been read
                     together is copied as well, and a model learns to copy rather than to remember
    join             whether neighbors are joined to texts of up to the model's length
    dropout          share of the values that a BART drops while it learns, by default what it was made with (those of
                     the hub 0.1, the built-in ones 0). What is said in one value alone does not survive it, so the
                     code becomes redundant
    content          if given, a piece of frequency p counts content / (content + p) in the loss (Arora, Liang & Ma,
                     ICLR 2017), so that a latent of few bits says what a text is about rather than how it is built
    epsilons         budgets to train for; none trains without noise
    first_noise      where the noise schedule starts, as a share of the mean size of a bounded number
    known_epsilon    the smallest epsilon the model was trained for before: the schedule starts there instead
    ramp             share of the steps after which the noise has reached its target
    seed             of the public randomness: order, initial weights, training noise
    """

    steps: int = 10_000
    batch_size: int = 64
    learning_rate: float = 1e-3
    evaluate_every: int = 500
    patience: int = 6
    held_out: int = 2_000
    plain_share: float = 0.0
    mixed_share: float = 0.0
    join: bool = False
    dropout: float | None = None
    content: float | None = None
    epsilons: tuple[float, ...] = ()
    first_noise: float = 0.1
    known_epsilon: float | None = None
    ramp: float = 0.4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluate_every", "patience", "held_out"):
            if getattr(self, name) < 1:
                raise BadParameterError(
                    "impossible-count",
                    "{setting} must be at least 1, not {value}",
                    setting=name.replace("_", " "),
                    value=getattr(self, name),
                )
        if not 0 < self.learning_rate < 1:
            raise BadParameterError(
                "impossible-learning-rate",
                "the learning rate must lie between 0 and 1, not {learning_rate}",
                learning_rate=self.learning_rate,
            )
        for name in ("plain_share", "mixed_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadParameterError(
                    "impossible-share",
                    "the {setting} lies between 0 and 1, not {value}",
                    setting=name.replace("_", " "),
                    value=getattr(self, name),
                )
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise BadParameterError(
                "impossible-dropout",
                "dropout lies between 0 and 1, for example 0.1, not {dropout}",
                dropout=self.dropout,
            )
        if self.content is not None and not self.content > 0:
            raise BadParameterError(
                "impossible-content-weight",
                "content must be above 0, for example 0.001, not {content}",
                content=self.content,
            )

    def rate(self, step: int) -> float:
        warm = max(1, self.steps // 20)
        if step < warm:
            return self.learning_rate * (step + 1) / warm
        full = max(warm, round(self.ramp * self.steps)) if self.epsilons else warm
        part = max(0, step - full) / max(1, self.steps - full)
        return self.learning_rate * (0.01 + 0.99 * (1 + math.cos(math.pi * min(1.0, part))) / 2)

    def scale(self, step: int, first: float, target: float) -> float:
        """The noise scale of a step on the way from the first one to the target."""
        part = min(1.0, step / max(1.0, self.ramp * self.steps))
        return target if first >= target else first ** (1 - part) * target**part


def target_scale(plan: PretrainingPlan, step: int) -> float:
    return plan.epsilons[step % len(plan.epsilons)]


def seed_of_step(seed: int, step: int) -> int:
    return (seed * 1_000_003 + step + 1) % (1 << 62)
