"""Training on public text, with the clipping and the noise that the released latents will have.

    z = encode(x);  z = bound(z);  z = z + noise(epsilon);  minimize the cross-entropy of x given z

Noise in training protects nothing: the text is public. It teaches the decoder what noisy latents look like
(DP-BART-PR+, Igamberdiev 2023, section 6.3.5). Its scale comes from the same typed pair as at release. Too much noise
from the start teaches the decoder to ignore the latent. So the noise grows over the first part of the steps,
geometrically, while the learning rate stays at its largest: from the smallest noise the model knows, or from a tenth of
the largest mean size a bounded number can have (`mean_size`). An epsilon would be no measure for that start: at epsilon
5,000 the noise is 2 % of C in an l2 ball, and 63 % of C in a cube of 920 numbers. With several epsilons each step takes
one of them, and one model serves them all: how noisy a latent is can be seen from its norm.

Every step derives its randomness from the seed and its own number. So a run that was stopped goes on from its last
checkpoint exactly as if it had not been. Only the number of steps may be changed then, to end a run sooner or later:
its schedules follow the new number from there on, and the results say so.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.atomic import draft_file
from tacit.devices import chosen_device, device_of, on_processor
from tacit.documents.autoencoders.base import (
    Autoencoder,
)
from tacit.documents.bounds import Bound, LatentNoise
from tacit.documents.pretraining.corpus import PublicText, declared
from tacit.documents.pretraining.folders import CHECKPOINT
from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
from tacit.documents.pretraining.batches import TrainingBatches, texts_to_train_and_measure
from tacit.documents.pretraining.measures import held_out_loss, mean_size, noisy
from tacit.documents.pretraining.plan import PretrainingPlan, seed_of_step, target_scale

LOG = "training.jsonl"


@dataclass(frozen=True)
class PretrainingStep:
    """One step of pretraining, as a progress bar shows it."""

    done: int
    total: int
    loss: float
    held_out_loss: float | None


OnStep = Callable[[PretrainingStep], None]


@dataclass
class _State:
    step: int = 0
    best_loss: float = math.inf
    waited: int = 0
    seconds: float = 0.0
    best: dict[str, Any] = field(default_factory=dict)
    schedules: list[list[int]] = field(default_factory=list)


def train(
    autoencoder: Autoencoder,
    corpus: PublicText,
    plan: PretrainingPlan,
    folder: Path,
    *,
    bound: Bound | None = None,
    noise: LatentNoise | None = None,
    resume: bool = False,
    progress: OnStep | None = None,
) -> dict[str, object]:
    """Train in place; checkpoints and logs go to `folder`. Returns steps, losses and minutes."""
    corpus = declared(corpus)
    if plan.epsilons and (noise is None or bound is None):
        raise BadParameterError(
            "clip-missing", "training for an epsilon needs a bound and a noise: give the clipping constant"
        )
    folder.mkdir(parents=True, exist_ok=True)
    training, held_out = texts_to_train_and_measure(autoencoder, corpus, plan.held_out, join=plan.join)
    device = chosen_device()
    autoencoder.module.to(device)
    data = TrainingBatches(autoencoder, training, plan)
    measured = torch.from_numpy(autoencoder.ids(held_out)).to(device)
    if data.weights is not None:
        data.weights = data.weights.to(device)
    optimizer = torch.optim.AdamW(autoencoder.module.parameters(), lr=plan.learning_rate, weight_decay=0.01)
    state = _start(autoencoder, optimizer, plan, corpus, folder, resume)
    started = time.monotonic() - state.seconds
    running: list[float] = []
    latest: float | None = None
    with (
        (folder / LOG).open("a", encoding="utf-8") as log,
        torch.random.fork_rng(devices=[]),
        dropping(autoencoder.module, plan.dropout),
    ):
        while state.step < plan.steps and state.waited < plan.patience:
            torch.manual_seed(seed_of_step(plan.seed, state.step))
            running.append(_step(autoencoder, optimizer, data, plan, state.step, bound, noise))
            state.step += 1
            if state.step % plan.evaluate_every == 0 or state.step == plan.steps:
                latest = held_out_loss(autoencoder, measured, plan, bound, noise, data.weights)
                state.seconds = time.monotonic() - started
                _judge(autoencoder, state, latest, settled=state.step >= plan.ramp * plan.steps or not plan.epsilons)
                line = {
                    "step": state.step,
                    "loss": round(float(np.mean(running)), 5),
                    "held_out_loss": round(latest, 5),
                    "learning_rate": plan.rate(state.step - 1),
                    "seconds": round(state.seconds, 1),
                }
                running.clear()
                log.write(json.dumps(line) + "\n")
                log.flush()
                _save(autoencoder, optimizer, plan, corpus, state, folder)
            if progress:
                progress(PretrainingStep(state.step, plan.steps, running[-1] if running else latest or 0.0, latest))
    if state.best:
        autoencoder.module.load_state_dict(state.best)
    autoencoder.module.eval()
    return {
        "steps": state.step,
        "stopped_early": state.step < plan.steps,
        "held_out_loss": round(state.best_loss, 4),
        "minutes": round(state.seconds / 60, 1),
        "training_texts": len(training),
        "held_out_texts": len(held_out),
        **({"steps_planned": state.schedules} if len(state.schedules) > 1 else {}),
    }


def _step(
    autoencoder: Autoencoder,
    optimizer: Optimizer,
    data: TrainingBatches,
    plan: PretrainingPlan,
    step: int,
    bound: Bound | None,
    noise: LatentNoise | None,
) -> float:
    autoencoder.module.train()
    ids = torch.from_numpy(data.batch(step)).to(device_of(autoencoder.module))
    latents = autoencoder.latents(ids)
    scale = None
    if bound is not None and noise is not None and plan.epsilons:
        n = bound.count(*latents.shape[1:])
        known = plan.known_epsilon
        first = plan.first_noise * mean_size(bound, n) if known is None else noise.scale(bound, n, known)
        scale = plan.scale(step, first, noise.scale(bound, n, target_scale(plan, step)))
    loss = autoencoder.loss(noisy(latents, bound, noise, scale), ids, data.weights)
    if not torch.isfinite(loss):
        raise BadInputError(
            "training-diverged", "training diverged: start again with a smaller learning rate ({option.learning_rate})"
        )
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(autoencoder.module.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = plan.rate(step)
    optimizer.step()
    return float(loss.detach())


@contextmanager
def dropping(module: nn.Module, share: float | None) -> Iterator[None]:
    """The module with this dropout wherever it has one (None: its own); afterwards with its own again."""
    places = [
        (part, name, value)
        for part in module.modules()
        if not isinstance(part, torch.nn.RNNBase)  # drops between layers, and ours has one
        for name in ("dropout", "activation_dropout")
        if isinstance(value := getattr(part, name, None), float)
    ]
    if share is not None and not places:
        raise BadParameterError("no-dropout", "this kind of model has no dropout: leave out {option.dropout}")
    try:
        for part, name, value in places:
            setattr(part, name, value if share is None else share)
        yield
    finally:
        for part, name, value in places:
            setattr(part, name, value)


def _judge(autoencoder: Autoencoder, state: _State, loss: float, *, settled: bool) -> None:
    """Keep the best weights. While the noise still grows, losses of different steps do not compare."""
    if loss < state.best_loss or not settled:
        state.best_loss, state.waited = loss, 0
        state.best = {name: value.clone() for name, value in autoencoder.module.state_dict().items()}
    else:
        state.waited += 1


# Checkpoints ------------------------------------------------------------------------------------------------------


def _identity(plan: PretrainingPlan, corpus: PublicText) -> dict[str, object]:
    values = {name: value for name, value in asdict(plan).items() if name != "steps"}
    return {**values, "epsilons": list(plan.epsilons), "corpus": corpus.name, "texts": len(corpus.texts)}


def _start(
    autoencoder: Autoencoder,
    optimizer: Optimizer,
    plan: PretrainingPlan,
    corpus: PublicText,
    folder: Path,
    resume: bool,
) -> _State:
    path = folder / CHECKPOINT
    if not resume:
        path.unlink(missing_ok=True)
        (folder / LOG).unlink(missing_ok=True)
    if not resume or not path.exists():
        return _State(schedules=[[0, plan.steps]])
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
        identity = saved["identity"]
    except Exception as error:  # pickle, zip and key errors have no common class
        raise BadInputError(
            "damaged-checkpoint", "{path} is damaged: start over without {option.resume}", path=path
        ) from error
    if changed := sorted(key for key, value in _identity(plan, corpus).items() if identity.get(key) != value):
        raise BadInputError(
            "another-training",
            "this is not the training that was stopped ({changed} changed): give the same options to go on, or start "
            "over without {option.resume}",
            changed=", ".join(changed),
        )
    autoencoder.module.load_state_dict(saved["module"])
    optimizer.load_state_dict(saved["optimizer"])
    schedules = saved.get("schedules") or [[0, identity.get("steps", plan.steps)]]
    if schedules[-1][1] != plan.steps:
        schedules = [*schedules, [saved["step"], plan.steps]]
    return _State(saved["step"], saved["best_loss"], saved["waited"], saved["seconds"], saved["best"], schedules)


def _save(
    autoencoder: Autoencoder,
    optimizer: Optimizer,
    plan: PretrainingPlan,
    corpus: PublicText,
    state: _State,
    folder: Path,
) -> None:
    checkpoint = {
        "identity": _identity(plan, corpus),
        "module": autoencoder.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "step": state.step,
        "best_loss": state.best_loss,
        "waited": state.waited,
        "seconds": state.seconds,
        "best": state.best,
        "schedules": state.schedules,
    }
    with draft_file(folder / CHECKPOINT) as draft:
        torch.save(on_processor(checkpoint), draft)


# Measuring --------------------------------------------------------------------------------------------------------
