"""A private training run from the first step to the saved model, in steps that can be stopped and taken up again.

The noise and the sample of a step are functions of the run's key and the number of the step. A run that is resumed from
a checkpoint repeats the steps after it with the same samples and the same noise, so nothing is released twice with two
different draws, and no budget is lost or counted twice. The key lies beside the checkpoint and is destroyed when the
run is finished: whoever has it can subtract the noise.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee
from tacit.noise.source import StreamKey
from tacit.training.clipping import QuantileClipping, make_clipping
from tacit.training.gradients import Checked, choose
from tacit.training.plan import Plan, pretrained
from tacit.training.step import PrivateStep, StepFacts
from tacit.training.tasks import Row, Task

PRIVATE_FOLDER = "private"
STATE = "checkpoint.pt"
SETTINGS = "task.json"
CARD = "card.json"
OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class Settings:
    """What a run is told, apart from data, model and plan. Nothing of it may depend on the private data."""

    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "linear"
    weight_decay: float = 0.0
    clipping: str = "automatic"
    bound: float = 1.0
    engine: str = "auto"
    physical: int = 32
    checkpoint_every: int = 100
    strategy: str = "full"
    model: str = ""

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("schedule", self.schedule, SCHEDULES),
        ):
            if value not in choices:
                raise BadParameterError(f"there is no {name} '{value}': choose one of {', '.join(choices)}")
        if not self.learning_rate > 0:
            raise BadParameterError(f"the learning rate must be positive, not {self.learning_rate}")


@dataclass
class Progress:
    """Handed to the caller after each step. Loss and clipped share are private."""

    step: int
    steps: int
    epsilon: float
    facts: StepFacts


@dataclass
class TrainingRun:
    """One run. `folder` receives the model and its card; checkpoint, key and log lie in its `private` folder."""

    task: Task
    model: Any
    tokenizer: Any
    rows: Sequence[Row]
    plan: Plan
    settings: Settings
    folder: Path
    seed: int | None = None
    trials: int = 1
    warn: Callable[[str], None] = field(default=lambda message: None)

    def run(self, progress: Callable[[Progress], None] | None = None, *, resume: bool = False) -> Guarantee:
        """Train to the end, save, and return what the saved model promises."""
        self.check_folder(resume=resume)
        engine, checked = choose(self.model, self.task.loss, self.task.probes(self.tokenizer), self.settings.engine)
        self.checked: Checked = checked
        clipping = make_clipping(self.settings.clipping, self.settings.bound, len(engine.parameters))
        optimizer = self._optimizer(list(engine.parameters.values()))
        scheduler = self._scheduler(optimizer)
        encoded = [self.task.encode(row, self.tokenizer, train=True) for row in self.rows]
        step = PrivateStep(
            engine,
            self.plan,
            clipping,
            lambda records: self.task.collate([encoded[i] for i in records], self.tokenizer),
            self.settings.physical,
            self.warn,
        )
        state = self._load(resume)
        key = StreamKey(state["key"], secure=self.seed is None)
        first = 0
        if "optimizer" in state:
            self._restore(state, engine.parameters, optimizer, scheduler, clipping)
            first = int(state["step"])
        else:
            self._save_state(0, key, engine.parameters, optimizer, scheduler, clipping)
        self.model.train()
        for number in range(first, self.plan.steps):
            optimizer.zero_grad(set_to_none=True)
            facts = step.run(number, key)
            optimizer.step()
            scheduler.step()
            self._log(number + 1, facts)
            if progress is not None:
                progress(Progress(number + 1, self.plan.steps, self.plan.epsilon_at_most(number + 1), facts))
            if (number + 1) % self.settings.checkpoint_every == 0 or number + 1 == self.plan.steps:
                self._save_state(number + 1, key, engine.parameters, optimizer, scheduler, clipping)
        return self._finish()

    # Parts ----------------------------------------------------------------------------------------------------

    def check_folder(self, *, resume: bool) -> None:
        state = self.folder / PRIVATE_FOLDER / STATE
        if resume and not state.exists():
            raise BadInputError(f"there is no unfinished run in {self.folder}: start one without --resume")
        if not resume and self.folder.exists() and any(self.folder.iterdir()):
            hint = "go on with --resume, or " if state.exists() else ""
            raise BadInputError(f"{self.folder} is not empty: {hint}give another folder")

    def _optimizer(self, parameters: list[Any]) -> Any:
        chosen, rate = self.settings.optimizer, self.settings.learning_rate
        if chosen == "sgd":
            return torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=self.settings.weight_decay)
        kind = torch.optim.AdamW if chosen == "adamw" else torch.optim.Adam
        return kind(parameters, lr=rate, weight_decay=self.settings.weight_decay)

    def _scheduler(self, optimizer: Any) -> Any:
        steps, kind = self.plan.steps, self.settings.schedule

        def factor(step: int) -> float:
            done = min(1.0, step / steps)
            if kind == "constant":
                return 1.0
            return 1.0 - done if kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))

        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(factor(step), 1e-3))

    def _fingerprint(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        plan = {**asdict(self.plan), "adjacency": self.plan.adjacency.value, "unit": self.plan.unit.value}
        return {
            "plan": plan,
            "settings": asdict(self.settings),
            "task": self.task.settings(),
            "seed": self.seed,
            "data": self._data(),
        }

    def _data(self) -> str:
        """Other rows with the same noise would show their difference."""
        digest = hashlib.blake2b(digest_size=16)
        for row in self.rows:
            digest.update(json.dumps(dict(row), sort_keys=True).encode())
        return digest.hexdigest()

    def _load(self, resume: bool) -> dict[str, Any]:
        if not resume:
            fresh = StreamKey.from_os() if self.seed is None else StreamKey.from_test_seed(self.seed)
            return {"key": fresh.key}
        state: dict[str, Any] = torch.load(self.folder / PRIVATE_FOLDER / STATE, weights_only=True)
        kept, now = json.loads(state["fingerprint"]), json.loads(json.dumps(self._fingerprint()))
        for part in now:
            if kept.get(part) != now[part]:
                raise BadInputError(
                    f"the unfinished run in {self.folder} had another {part}: repeat its command, or start anew in "
                    "another folder"
                )
        return state

    def _restore(self, state: dict[str, Any], parameters: Any, optimizer: Any, scheduler: Any, clipping: Any) -> None:
        with torch.no_grad():
            for name, value in state["parameters"].items():
                parameters[name].copy_(value)
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["random"])
        if isinstance(clipping, QuantileClipping):
            clipping.bound = float(state["bound"])

    def _save_state(
        self, step: int, key: StreamKey, parameters: Any, optimizer: Any, scheduler: Any, clipping: Any
    ) -> None:
        private = self.folder / PRIVATE_FOLDER
        private.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = private / f".{STATE}.draft"
        torch.save(
            {
                "step": step,
                "key": key.key,
                "parameters": {name: p.detach().clone() for name, p in parameters.items()},
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "random": torch.get_rng_state(),
                "bound": float(clipping.bound),
                "fingerprint": json.dumps(self._fingerprint()),
            },
            draft,
        )
        draft.replace(private / STATE)

    def _log(self, step: int, facts: StepFacts) -> None:
        path = self.folder / PRIVATE_FOLDER / "log.csv"
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(["step", "epsilon at most", "examples", "loss", "shortened", "bound"])
            writer.writerow(
                [step, self.plan.epsilon_at_most(step), facts.examples, facts.loss, facts.shortened, facts.bound]
            )

    def promise(self) -> Guarantee:
        """What the finished model promises."""
        made = self.plan.guarantee(
            steps=self.plan.steps,
            secure=self.seed is None,
            what=f"DP-{self.settings.optimizer.upper()} ({self.task.name}, strategy {self.settings.strategy})",
            parameters={"clipping": self.settings.clipping, "bound": self.settings.bound, "model": self.settings.model},
            trials=self.trials,
        )
        return replace(made, provenance=(*made.provenance, pretrained(self.settings.model or "a model")))

    def _finish(self) -> Guarantee:
        """Save the model as transformers does, with card and settings; destroy the key."""
        self.model.eval()
        guarantee = self.promise()
        whole = self.model.merge_and_unload() if hasattr(self.model, "merge_and_unload") else self.model
        if hasattr(whole, "save_pretrained"):
            whole.save_pretrained(self.folder)
        else:
            torch.save(whole.state_dict(), self.folder / "model.pt")
        if hasattr(self.tokenizer, "save_pretrained"):
            self.tokenizer.save_pretrained(self.folder)
        (self.folder / SETTINGS).write_text(json.dumps(self.task.settings(), indent=2) + "\n", encoding="utf-8")
        (self.folder / CARD).write_text(Card(guarantee).to_json(), encoding="utf-8")
        (self.folder / PRIVATE_FOLDER / STATE).unlink()
        return guarantee
