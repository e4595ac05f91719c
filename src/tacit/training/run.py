"""A private training run from the first step to the saved model, in steps that can be stopped and taken up again.

The noise, the sample and the dropout of a step are functions of the run's key and the number of the step. A run that is
resumed from a checkpoint repeats the steps after it with the same samples and the same noise, so nothing is released
twice with two different draws, and no budget is lost or counted twice. The key lies beside the checkpoint, in a file
of its own that is written once (`tacit.noise.kept_key`), and is overwritten when the run is finished: whoever has it
can subtract the noise.

What a model promises depends on where its weights come from: see `starting_weights`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.optim import Optimizer

from tacit.account.release_charge import ReleaseCharge
from tacit.card import Card
from tacit.devices import device_of, moved, seed_torch
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee
from tacit.lineage import CARD, SETTINGS
from tacit.noise.source import StreamKey
from tacit.precision import Precision
from tacit.progress import StepProgress
from tacit.training.adam_bc import AdamBC
from tacit.training.average import WeightAverage
from tacit.training.card_parameters import card_parameters
from tacit.training.checkpoint import (
    Beginning,
    Training,
    check_run_folder,
    forget,
    read_checkpoint,
    write_key,
)
from tacit.training.clipping import make_clipping
from tacit.training.device_noise import ASSUMED, SECURE, check_device_noise
from tacit.training.frozen import computed_once
from tacit.training.gradients import Batch, Checked, choose
from tacit.training.layout import choose_layout
from tacit.training.log import StepReport, TrainingLog
from tacit.training.models import save_model
from tacit.training.optimizers import optimizer_for, scheduler_for
from tacit.training.origin import Origin, with_code_of_plugin
from tacit.training.physical import fitting
from tacit.training.plan import TrainingPlan, check_composed
from tacit.training.private_folder import private_folder, remove_unused
from tacit.training.public_gradients import PublicGradients, public_help
from tacit.training.recomputing import compute_again
from tacit.training.record_rows import RecordRows
from tacit.training.run_identity import digest_of, digest_of_pieces, refuse_another_run, what_is_done
from tacit.training.settings import TrainingSettings
from tacit.training.sharding import check_shardable, in_parts
from tacit.training.sixteen import ShapeTrial, check_sixteen_bits, collated, in_sixteen, shapes_of
from tacit.training.step import PlainStep, PrivateStep, check_weights
from tacit.training.tasks import Row, Task
from tacit.training.team import Team
from tacit.training.user_plans import UserPlan
from tacit.training.user_rows import UserRows
from tacit.training.user_steps import check_users, plain_step, prepare_units, private_step

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["StepReport", "TrainingRun", "TrainingSettings", "digest_of"]

ENGINE = "engine.json"
LONGEST_BETWEEN_CHECKPOINTS = 120.0
"""Seconds of work that a stopped run has to repeat at most, about."""


@dataclass
class TrainingRun:
    """One run. `folder` receives the model and its card, and nothing that is private; checkpoint, key and log lie in
    a folder beside it, which only its owner may enter (`tacit.training.private_folder`). The budget is set aside by
    `charge` before the first step, and spent when the model is there.

    `origin` says what is known about the starting weights and the data; `trials` how many runs on the same records were
    compared; `configuration` the options that made the run, for its card; `trained` chooses on public rows what is
    chosen once the weights are final. In a `team` of processes each holds the same run, or with `shard` parts of the
    weights. The model computes on `device`, and stays there. `user_rows` says whose the rows are, for plans of users.
    """

    task: Task
    model: nn.Module
    tokenizer: PreTrainedTokenizerBase
    rows: Sequence[Row]
    plan: TrainingPlan
    settings: TrainingSettings
    folder: Path
    seed: int | None = None
    trials: int = 1
    warn: Callable[[str], None] = field(default=lambda message: None)
    origin: Origin = field(default_factory=Origin)
    configuration: Mapping[str, object] = field(default_factory=dict)
    team: Team = field(default_factory=Team)
    checked: Checked | None = None
    device: torch.device | str = "cpu"
    shard: bool = False
    prepared: StepProgress = field(default=lambda done, total: None)
    public_rows: Sequence[Row] = ()
    charge: ReleaseCharge = field(default_factory=ReleaseCharge)
    trained: Callable[[], None] = field(default=lambda: None)
    user_rows: UserRows | None = field(default=None, kw_only=True)
    _padding: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_users(self.plan, self.user_rows, len(self.rows))
        if self.trials < 1:
            raise BadParameterError(
                "too-few-trials",
                "the number of trials, this run included, is at least 1, not {trials}",
                trials=self.trials,
            )
        marks = getattr(self.tokenizer, "num_special_tokens_to_add", int)()
        least = max(2, marks + 1)
        if self.task.length < least:
            raise BadParameterError(
                "length-too-short",
                "a length of {length} leaves nothing of a text to learn from: give at least {least} word pieces",
                length=self.task.length,
                least=least,
            )

    def run(self, progress: Callable[[StepReport], None] | None = None, *, resume: bool = False) -> Guarantee:
        """Train to the end, save, and return what the saved model promises."""
        if self.team.first:
            self.check_folder(resume=resume)
        # A promise that cannot be made is refused before the first step.
        self.promise()
        self._check_place()
        beginning = self.team.from_first(self._beginning(resume) if self.team.first else None)
        self.model.to(self.device)
        self._lay_out()
        step = self._step()
        parameters = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        optimizer = self._optimizer(list(parameters.values()))
        scheduler = scheduler_for(optimizer, self.settings.schedule, self.plan.steps)
        if isinstance(optimizer, AdamBC):
            optimizer.deviation = lambda: step.deviation
        average = WeightAverage.of(parameters, self.settings.average, self.plan.steps)
        training = Training(parameters, optimizer, scheduler, getattr(step, "clipping", None), step, average)
        key = StreamKey(beginning.key, secure=self.seed is None)
        done = 0
        if not self.shard:
            self.team.same_weights(list(self.model.parameters()))
        if beginning.checkpoint is not None:
            training.restore(beginning.checkpoint)
            done = int(beginning.checkpoint["step"])

        def save() -> None:
            if self.team.first or self.shard:
                training.save(self.folder, done, self.described(), write=self.team.first)

        if beginning.checkpoint is None and self.team.first:
            write_key(self.folder, key.key)
        if not done:
            save()
        if self.team.first:
            self._reserve(fresh=beginning.checkpoint is None)
        if self.team.first and self.checked is not None:
            (self.private / ENGINE).write_text(json.dumps(asdict(self.checked), indent=1) + "\n")
        log = TrainingLog(self.private, after=done, tensorboard=self.settings.tensorboard)
        self.model.train()
        saved = time.monotonic()
        try:
            while done < self.plan.steps:
                self._seed_torch(key, done)
                facts = step.run(done, key)
                optimizer.step()
                scheduler.step()
                done += 1
                average.add(done)
                check_weights([*parameters.values(), *average.mean.values()], self.team if self.shard else None)
                epsilon = self.plan.epsilon_at_most(done)
                if self.team.first:
                    log.write(done, epsilon, facts)
                    if progress is not None:
                        progress(StepReport(done, self.plan.steps, epsilon, facts))
                if done % self.settings.checkpoint_every == 0 or time.monotonic() - saved > LONGEST_BETWEEN_CHECKPOINTS:
                    save()
                    saved = time.monotonic()
        finally:
            log.close()
        average.put()
        if isinstance(step, PrivateStep) and step.shards is not None:
            self.model = step.shards.whole()
        return self._finish() if self.team.first else self.promise()

    # Parts ----------------------------------------------------------------------------------------------------

    @property
    def private(self) -> Path:
        """The folder for what must not leave."""
        return private_folder(self.folder)

    def _check_place(self) -> None:
        """Refuse what this device or team cannot do, before any work."""
        if self.shard:
            check_shardable(self.settings, self.plan, self.team)
        if self.plan.private and self.settings.noise_generator != SECURE:
            check_device_noise(torch.device(self.device), self.plan, secret=self.seed is None, team=self.team)

    def _reserve(self, *, fresh: bool) -> None:
        """Set the budget aside; a fresh run that is refused leaves nothing behind."""
        try:
            self.charge.reserve(self.charged())
        except BaseException:
            if fresh:
                remove_unused(self.folder)
            raise

    def charged(self) -> Guarantee:
        """The promise of this run alone, as a ledger counts it: weights that are private already were counted when
        they were trained. It has no details that could be others when the run goes on."""
        return self._own({})

    def _settle(self) -> None:
        """Spend the budget: the model and its card are there."""
        self.charge.commit()

    def check_folder(self, *, resume: bool) -> None:
        """Refuse a folder that holds something else, before anything is done."""
        check_run_folder(self.folder, resume=resume)

    def _lay_out(self) -> None:
        """Choose how records are filled up, by model and tokenizer."""
        if self.plan.private:
            self._padding = choose_layout(self.task, self.model, self.tokenizer, self.warn)

    def _encoded(self) -> RecordRows:
        """The token ids of all rows; the task may warn about them, for example about texts that are cut."""
        encoded = RecordRows.of(self.task, self.rows, self.tokenizer)
        if self.team.first:
            for remark in self.task.remarks(self.rows, encoded.firsts):
                self.warn(remark)
        return encoded

    def _step(self) -> PrivateStep | PlainStep:
        encoded = self._encoded()
        device = device_of(self.model)
        probes, filled = [moved(probe, device) for probe in self.task.probes(self.tokenizer)], []
        trained = self.model
        once: Precision = "float32" if self.settings.precision == "float32" else "fast"
        halves, kept = computed_once(
            self.model, self.task, encoded.rows, self.tokenizer, precision=once, progress=self.prepared
        )
        if halves is not None:
            trained, probes = halves.top, [halves.continued(probe) for probe in probes]
            filled = [halves.continued_alone(record.on(device)) for record in self.task.filled(self.tokenizer)]

        sixteen = self.settings.precision == "bf16"
        shaped = collated if sixteen and self.plan.private else type(self.task).collate

        def collate(records: Sequence[int]) -> Batch:
            batch = moved(encoded.batch(records, lambda rows: shaped(self.task, rows, self.tokenizer)), device)
            return batch if kept is None else kept.added(batch, encoded.of_records(records))

        if sixteen:
            check_sixteen_bits(device, self.task.most_rows if self.plan.private else 1)
        physical = self.settings.physical or fitting(trained, self.task.loss, probes, self.task.length, self.plan.batch)
        shared = (collate, physical, self.warn, encoded.lengths, self.team, encoded.several)
        if not self.plan.private:
            if self.settings.gradient_checkpointing:
                compute_again(trained)
            loss = in_sixteen(self.task.loss, device) if sixteen else self.task.loss
            return plain_step(self.plan, self.user_rows, shared, model=trained, loss=loss)
        engine, checked = choose(trained, self.task.loss, probes, self.settings.engine, filled=filled)
        deviation = max(checked.padding_deviation, self._padding)
        if self.settings.gradient_checkpointing:
            compute_again(trained, engine, probes)
        shapes = None
        if sixteen:
            engine.loss = in_sixteen(engine.loss, device, keep_copies=not self.shard)
        shards = in_parts(self.model, engine, probes, self.team, device) if self.shard else None
        if sixteen:
            trial = ShapeTrial(engine, trained, self.task, self.tokenizer, device, halves)
            alone = isinstance(self.plan, UserPlan)
            physical, off = trial.fitting(physical, self.warn, self.team, alone=alone, shrinks=not self.shard)
            deviation = max(deviation, off)
            shapes = None if alone else trial
            lengths = encoded.lengths if alone else shapes_of(encoded.rows, self.task.length)
            shared = (collate, physical, self.warn, lengths, *shared[4:])
        units = prepare_units(self.plan, engine, trained, probes, sixteen=sixteen)
        summed = max(checked.sum_deviation, units.deviation)
        self.checked = replace(checked, padding_deviation=deviation, sum_deviation=summed)
        clipping = make_clipping(self.settings.clipping, self.settings.bound, len(engine.parameters))
        return private_step(
            self.plan, self.user_rows, shared, engine=engine, clipping=clipping, model=self.model,
            public=self._public(), shapes=shapes, alone=units.alone, shards=shards,
            generator=self.settings.noise_generator, agreed=sixteen and self.team.size > 1,
        )  # fmt: skip

    def _public(self) -> PublicGradients | None:
        """The gradients of the public rows, if the settings say how they help."""
        shared = (self.plan, self.model, self.task, self.tokenizer, self.public_rows)
        return public_help(self.settings, *shared, warn=self.warn, team=self.team)

    def _seed_torch(self, key: StreamKey, step: int) -> None:
        """Dropout and masks of a step, so that a repeated step is the same; each process of a team has its own."""
        seed_torch(int(key.stream(step, b"torch").generator.integers(2**62)) + self.team.rank)

    def _optimizer(self, parameters: list[nn.Parameter]) -> Optimizer:
        chosen = self.settings
        return optimizer_for(parameters, chosen.optimizer, chosen.learning_rate, chosen.weight_decay)

    def _fingerprint(self) -> dict[str, object]:
        """The settings that must be the same for a run to go on."""
        return {
            **what_is_done(self.task, self.model, self.plan, self.settings, torch.device(self.device)),
            "seed": self.seed,
            "data": self._data,
            "tokenizer": self._pieces,
            **({"public rows": digest_of(self.public_rows)} if self.public_rows else {}),
            **({"users": self.user_rows.users.fingerprint()} if self.user_rows else {}),
        }

    @cached_property
    def _data(self) -> str:
        """The digest of the rows: other rows with the same noise would show their difference."""
        return digest_of(self.rows)

    @cached_property
    def _pieces(self) -> str:
        return digest_of_pieces(self.tokenizer)

    def _beginning(self, resume: bool) -> Beginning:
        if not resume:
            fresh = StreamKey.from_os() if self.seed is None else StreamKey.from_test_seed(self.seed)
            return Beginning(fresh.key)
        key, checkpoint = read_checkpoint(self.folder)
        self.check_same(checkpoint["fingerprint"], "unfinished")
        return Beginning(key, checkpoint)

    def described(self) -> str:
        """All settings that decide the weights, as JSON. Private, because it has a hash of the data."""
        return json.dumps(self._fingerprint())

    def check_same(self, described: str, kind: str) -> None:
        """Refuse a folder whose run had other settings."""
        refuse_another_run(described, self.described(), kind=kind, folder=self.folder)

    def promise(self) -> Guarantee:
        """The guarantee of the finished model."""
        own = self._own(self._parameters())
        promise = self.origin.with_training(own, self.settings.model or "a model")
        return check_composed(promise, self.plan.units) if own.is_private else promise

    def _own(self, parameters: Mapping[str, object]) -> Guarantee:
        """The guarantee of this training alone."""
        own = self.plan.guarantee(
            steps=self.plan.steps,
            secure=self.seed is None,
            what=f"DP-{self.settings.optimizer.upper()} ({self.task.name}, strategy {self.settings.strategy})"
            if self.plan.private
            else f"{self.settings.optimizer.upper()} ({self.task.name}, strategy {self.settings.strategy})",
            parameters=parameters,
            trials=self.trials,
        )
        if self.plan.private and self.settings.noise_generator != SECURE:
            own = own.also_assuming(ASSUMED)
        return with_code_of_plugin(own, self.task.name, type(self.task))

    def _parameters(self) -> dict[str, object]:
        """Details for the card."""
        return card_parameters(self.settings, self.plan, self.task, self.checked)

    def _finish(self) -> Guarantee:
        """Save the model as transformers does, with card and settings; destroy the key."""
        self.model.eval()
        self.trained()
        guarantee = self.promise()
        self.folder.mkdir(parents=True, exist_ok=True)
        save_model(self.model, self.tokenizer, self.folder)
        settings = {**self.task.settings(), **self.origin.settings()}
        (self.folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        (self.folder / CARD).write_text(Card(guarantee, configuration=self.configuration).to_json(), encoding="utf-8")
        self._settle()
        forget(self.folder)
        return guarantee
