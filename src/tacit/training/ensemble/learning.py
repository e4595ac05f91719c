"""One LoRA for each shard of a causal language model, without noise: the models stay private, so nothing is promised.

What the model of a shard becomes depends on its own rows, the public model and public settings, and on nothing else:
the same starting weights, a public order of its rows, as many steps as its own rows take, an optimizer of its own. That
is what the guarantee of the tokens needs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from tacit.arrays import Ids
from tacit.atomic import write_file
from tacit.devices import device_of
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.training.ensemble.folder import EnsembleSettings
from tacit.training.optimizers import optimizer_for, scheduler_for
from tacit.training.strategies import apply_strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel

IGNORED = -100


class PublicModel(Protocol):
    """A causal model of public text (`documents.language_models.CausalModel`).

    support   the tokens that may come out, a public list
    end       the token that ends a text
    room      the number of positions it reads, or None where it sets no limit
    """

    model: PreTrainedModel
    name: str

    @property
    def support(self) -> Ids: ...

    @property
    def end(self) -> int | None: ...

    @property
    def pad(self) -> int: ...

    @property
    def room(self) -> int | None: ...

    def before_text(self) -> tuple[int, ...]:
        """The special tokens before every text."""

    def tokens(self, text: str, limit: int) -> list[int]:
        """The first tokens of a text."""

    def text(self, ids: Sequence[int]) -> str:
        """The text of tokens."""


def start_tokens(generator: PublicModel) -> list[int]:
    """The tokens before every text; a model without any begins with the token that ends texts."""
    return [*generator.before_text()] or [generator.pad if generator.end is None else generator.end]


class ShardNetwork:
    """The public model with one LoRA beside its weights, which those of any shard can be put into."""

    def __init__(self, generator: PublicModel, *, rank: int, seed: int) -> None:
        self.generator = generator
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model: PreTrainedModel = apply_strategy(copy.deepcopy(generator.model), "lora", rank=rank)
        self.weights: dict[str, nn.Parameter] = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        self._start = {name: weight.detach().clone() for name, weight in self.weights.items()}

    def reset(self) -> None:
        self._put(self._start)

    def load(self, path: Path) -> None:
        """Put the weights of a shard in place."""
        kept = load_file(path)
        if set(kept) != set(self.weights):
            raise BadInputError(
                "damaged-file", "{path} is damaged: train the ensemble again, or repair it", path=path.name
            )
        self._put(kept)

    def save(self, path: Path) -> None:
        content = save({name: weight.detach().cpu().contiguous() for name, weight in self.weights.items()})
        write_file(path, content, private=True)

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(weights[name])

    # Learning ---------------------------------------------------------------------------------------------------

    def encoded(self, text: str, length: int) -> list[int]:
        ids = [*start_tokens(self.generator), *self.generator.tokens(text, length)]
        return ids if self.generator.end is None else [*ids, self.generator.end]

    def learn(
        self, texts: Sequence[str], settings: EnsembleSettings, seed: int, stepped: Callable[[int, int], None]
    ) -> None:
        """Train the weights, from their start, on the texts of one shard."""
        self.reset()
        rows = [self.encoded(text, settings.length) for text in texts]
        steps = steps_of_shard(len(rows), settings)
        optimizer = optimizer_for([*self.weights.values()], "adamw", settings.learning_rate, 0.0)
        scheduler = scheduler_for(optimizer, "linear", steps)
        generator = public_generator(seed)
        order: list[int] = []
        self.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for step in range(steps):
                while len(order) < min(settings.batch, len(rows)):
                    order += generator.permutation(len(rows)).tolist()
                chosen, order = order[: settings.batch], order[settings.batch :]
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(self._loss([rows[i] for i in chosen]))
                optimizer.step()
                scheduler.step()
                stepped(step + 1, steps)
        self.model.eval()

    def _loss(self, rows: Sequence[Sequence[int]]) -> Tensor:
        width = max(map(len, rows))
        pad = self.generator.pad
        device = device_of(self.model)
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows]).to(device)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]).to(device)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        targets = ids.masked_fill(mask == 0, IGNORED)[:, 1:]
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def steps_of_shard(rows: int, settings: EnsembleSettings) -> int:
    """The steps of a shard, by its own rows alone."""
    return math.ceil(rows * settings.epochs / settings.batch) if rows else 0
