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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.atomic import draft_file
from tacit.documents.autoencoders.base import (
    Autoencoder,
)
from tacit.documents.bounds import Bound, ClipL1, ClipL2, ClipValue, LatentNoise
from tacit.documents.pretraining.corpus import PublicText, declared, joined
from tacit.documents.pretraining.folders import BLEU, CHECKPOINT
from tacit.errors import BadInputError, BadParameterError, require

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

LOG = "training.jsonl"


@dataclass(frozen=True, kw_only=True)
class PretrainingPlan:
    """How to train.

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


@dataclass(frozen=True)
class PretrainingStep:
    """What a progress bar shows."""

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
    data = _Data(autoencoder, training, plan)
    measured = torch.from_numpy(autoencoder.ids(held_out))
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
            torch.manual_seed(_seed(plan.seed, state.step))
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
    data: _Data,
    plan: PretrainingPlan,
    step: int,
    bound: Bound | None,
    noise: LatentNoise | None,
) -> float:
    autoencoder.module.train()
    ids = torch.from_numpy(data.batch(step))
    latents = autoencoder.latents(ids)
    scale = None
    if bound is not None and noise is not None and plan.epsilons:
        n = bound.count(*latents.shape[1:])
        known = plan.known_epsilon
        first = plan.first_noise * mean_size(bound, n) if known is None else noise.scale(bound, n, known)
        scale = plan.scale(step, first, noise.scale(bound, n, _target(plan, step)))
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


def _target(plan: PretrainingPlan, step: int) -> float:
    return plan.epsilons[step % len(plan.epsilons)]


def mean_size(bound: Bound, n: int) -> float:
    """The largest root mean square of n bounded numbers: C in a cube, C / sqrt(n) and C / n spread over a ball."""
    return bound.C / {"value": 1.0, "l2": math.sqrt(n), "l1": float(n)}[bound.kind]


def held_out_loss(
    autoencoder: Autoencoder,
    ids: Tensor,
    plan: PretrainingPlan,
    bound: Bound | None,
    noise: LatentNoise | None,
    weights: Tensor | None = None,
) -> float:
    """Mean loss on texts that training does not see, with the noise of the target, and always the same noise."""
    autoencoder.module.eval()
    torch.manual_seed(_seed(plan.seed, -1))
    losses: list[float] = []
    with torch.inference_mode():
        for number, start in enumerate(range(0, len(ids), 256)):
            part = ids[start : start + 256]
            latents = autoencoder.latents(part)
            scale = None
            if bound is not None and noise is not None and plan.epsilons:
                scale = noise.scale(bound, bound.count(*latents.shape[1:]), _target(plan, number))
            latents = noisy(latents, bound, noise, scale)
            losses += [float(autoencoder.loss(latents, part, weights))] * len(part)
    return float(np.mean(losses))


def noisy(latents: Tensor, bound: Bound | None, noise: LatentNoise | None, scale: float | None) -> Tensor:
    """The tensor counterpart of `bounds.release`, with gradients; for public text only."""
    if bound is None:
        return latents
    latents = clipped(latents, bound)
    if noise is None or scale is None:
        return latents
    columns = bound.columns(latents.shape[2])
    shape = (*latents.shape[:2], len(columns))
    drawn = torch.randn(shape) if noise.kind == "gaussian" else torch.distributions.Laplace(0.0, 1.0).sample(shape)
    if len(columns) == latents.shape[2]:
        return latents + drawn * scale
    added = torch.zeros_like(latents)
    added[:, :, torch.from_numpy(columns)] = drawn * scale
    return latents + added


def clipped(latents: Tensor, bound: Bound) -> Tensor:
    """The bound in torch. Release uses `Bound.apply`, which is exact."""
    if isinstance(bound, ClipValue):
        mask = torch.zeros(latents.shape[2])
        mask[torch.from_numpy(bound.columns(latents.shape[2]))] = 1.0
        return latents.clamp(-bound.C, bound.C) * mask
    if not isinstance(bound, ClipL1 | ClipL2):
        raise BadParameterError(
            "unknown-bound", "training knows no bound '{kind}': use l1, l2 or value", kind=bound.kind
        )
    flat = latents.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(flat, ord=1 if isinstance(bound, ClipL1) else 2, dim=1, keepdim=True)
    return (flat * (bound.C / norm.clamp(min=bound.C))).reshape(latents.shape)


def texts_to_train_and_measure(
    autoencoder: Autoencoder, corpus: PublicText, held_out: int, *, join: bool = False
) -> tuple[list[str], list[str]]:
    """Training and held-out texts, which have no sentence in common."""
    parts = corpus.split(held_out)
    if not join:
        return parts

    def fits(text: str) -> bool:
        return bool(autoencoder.ids([text])[0, -1] == autoencoder.padding_id)

    return joined(parts[0], fits), joined(parts[1], fits)


class _Data:
    """Batches by number, of texts of similar length; every epoch has an order that depends on the seed only."""

    def __init__(self, autoencoder: Autoencoder, texts: Sequence[str], plan: PretrainingPlan) -> None:
        self._plan = plan
        self._ids = autoencoder.ids(texts)
        self._plain = autoencoder.ids([plain(text) for text in texts]) if plan.plain_share else self._ids
        self._lengths = (self._ids != autoencoder.padding_id).sum(axis=1)
        self._marks = {autoencoder.padding_id, *autoencoder.ids([""])[0].tolist()}
        self.weights = None if plan.content is None else content_weights(self._ids, autoencoder.pieces, plan.content)
        self._epoch = -1
        self._batches: list[NDArray[np.int64]] = []

    def batch(self, step: int) -> Ids:
        size = min(self._plan.batch_size, len(self._ids))
        per_epoch = max(1, len(self._ids) // size)
        epoch, number = divmod(step, per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._shuffled(epoch, size)
        chosen = self._batches[number]
        generator = np.random.Generator(np.random.PCG64([self._plan.seed, step, 1]))
        as_plain = generator.random(len(chosen)) < self._plan.plain_share
        ids = np.where(as_plain[:, np.newaxis], self._plain[chosen], self._ids[chosen])
        return mixed(ids, self._marks, self._plan.mixed_share, generator) if self._plan.mixed_share else ids

    def _shuffled(self, epoch: int, size: int) -> list[NDArray[np.int64]]:
        generator = np.random.Generator(np.random.PCG64([self._plan.seed, epoch]))
        order = generator.permutation(len(self._ids))
        pool = 32 * size
        pools = (order[start : start + pool] for start in range(0, len(order), pool))
        order = np.concatenate([part[np.argsort(self._lengths[part], kind="stable")] for part in pools])
        batches = [order[start : start + size] for start in range(0, len(order) - size + 1, size)]
        return [batches[number] for number in generator.permutation(len(batches))]


def content_weights(ids: Ids, pieces: int, content: float) -> Tensor:
    """content / (content + p) for each piece of the vocabulary, p its share in the texts; rare pieces count most."""
    counts = np.bincount(ids.ravel(), minlength=pieces).astype(np.float64)
    weights = content / (content + counts / max(1.0, counts.sum()))
    return torch.from_numpy(weights.astype(np.float32))


def mixed(ids: Ids, marks: set[int], share: float, generator: np.random.Generator) -> Ids:
    """In a share of the texts, each piece becomes that of another text at the same place with probability 1/4."""
    other = np.roll(ids, 1, axis=0)
    words = ~np.isin(ids, list(marks)) & ~np.isin(other, list(marks))
    chosen = (generator.random(len(ids)) < share)[:, np.newaxis] & (generator.random(ids.shape) < 0.25)
    return np.where(words & chosen, other, ids)


def plain(text: str) -> str:
    """Lower case, no punctuation but apostrophes: the style of voice assistants and chats."""
    kept = "".join(character if character.isalnum() or character in " '" else " " for character in text.lower())
    return " ".join(kept.split())


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
        saved = torch.load(path, weights_only=True)
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
        torch.save(checkpoint, draft)


def _seed(seed: int, step: int) -> int:
    return (seed * 1_000_003 + step + 1) % (1 << 62)


# Measuring --------------------------------------------------------------------------------------------------------


def reconstruction_bleu(
    autoencoder: Autoencoder,
    texts: Sequence[str],
    *,
    bound: Bound | None = None,
    beams: int = 1,
    lowercase: bool = False,
    batch_size: int = 128,
) -> float:
    """Corpus BLEU (sacrebleu, 0 to 100) of texts encoded, bounded and decoded without noise."""
    sacrebleu = require("sacrebleu", extra="documents", purpose="measuring BLEU")
    decoded: list[str] = []
    for start in range(0, len(texts), batch_size):
        latents = autoencoder.encode(texts[start : start + batch_size])
        decoded += autoencoder.decode(latents if bound is None else bound.apply(latents), beams=beams)
    return float(sacrebleu.corpus_bleu(decoded, [list(texts)], lowercase=lowercase).score)


def held_out_bleu(
    autoencoder: Autoencoder, corpus: PublicText, held_out: int, *, join: bool = False, lowercase: bool = False
) -> dict[str, float]:
    """BLEU on up to 500 held-out texts, and on joined ones if the model was trained with those."""
    bound = autoencoder.record.trained_bound()
    measured = {BLEU: corpus.split(held_out)[1]}
    if join:
        measured["held_out_bleu_joined"] = texts_to_train_and_measure(autoencoder, corpus, held_out, join=True)[1]
    return {
        name: round(reconstruction_bleu(autoencoder, texts[:500], bound=bound, lowercase=lowercase), 2)
        for name, texts in measured.items()
    }
