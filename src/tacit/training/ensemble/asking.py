"""Tokens drawn from an ensemble, one after another.

For each token the public model reads the tokens so far and gives the band; one shard is drawn, its model reads them and
is held inside the band; the token is drawn from that. The public model runs alone, never in a batch with a shard: its
numbers are the same whatever the private data are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from tacit.arrays import Floats
from tacit.devices import device_of
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import Source
from tacit.training.ensemble.band import Band, drawn_shard, drawn_token, public_weights
from tacit.training.ensemble.folder import EnsembleFolder
from tacit.training.ensemble.learning import PublicModel, ShardNetwork, start_tokens

REMEMBERED: Final = 8
"""Shards whose attention to the tokens so far is kept while an answer is drawn."""


@dataclass
class _Reading:
    """How far a model has read an answer: its attention cache, and the number of tokens in it."""

    past: Any = None
    read: int = 0


class Ensemble:
    """A finished ensemble with its public model, ready to draw."""

    def __init__(self, folder: EnsembleFolder, public: PublicModel) -> None:
        self.folder = folder
        self.settings = folder.settings()
        self.public = public
        self.network = ShardNetwork(self.public, rank=self.settings.rank, seed=self.settings.start_seed)
        self.network.model.eval()
        self._support = torch.from_numpy(self.public.support)

    def prompt(self, text: str, length: int, most: int) -> list[int]:
        """The tokens of a prompt; one that leaves no room for its answer is refused."""
        ids = [*start_tokens(self.public), *self.public.tokens(text, most)]
        if self.public.room is not None and len(ids) + length > self.public.room:
            raise BadInputError(
                "prompt-too-long",
                "a prompt has {tokens:,} tokens and its answer up to {length:,}, but {name} reads {room:,}: shorten "
                "the prompt, or ask for a shorter answer",
                tokens=len(ids),
                length=length,
                name=self.public.name,
                room=self.public.room,
            )
        return ids

    def answer(
        self,
        prompt: Sequence[int],
        *,
        band: Band,
        tokens: int,
        temperature: float,
        source: Source,
        drawn: Callable[[int], None] = lambda count: None,
    ) -> list[int]:
        """Up to so many tokens after a prompt, without the one that ends them. What follows that one is not drawn, and
        was paid for: the length of an answer is a function of its tokens."""
        ids = list(prompt)
        public = _Reading()
        readings: OrderedDict[int, _Reading] = OrderedDict()
        for number in range(tokens):
            weights = public_weights(self._law(self.public.model, public, ids, temperature))
            shard = drawn_shard(band.shards, source)
            law = self._shard_law(shard, readings, ids, temperature)
            held = weights if law is None else band.held(weights, law)
            token = int(self.public.support[drawn_token(held, source)])
            drawn(number + 1)
            if token == self.public.end:
                break
            ids.append(token)
        return ids[len(prompt) :]

    def _shard_law(
        self, shard: int, readings: OrderedDict[int, _Reading], ids: Sequence[int], temperature: float
    ) -> Floats | None:
        """The law of a shard for the next token; None for a shard without rows, which is the public model."""
        place = self.folder.shard(shard)
        if not place.exists():
            return None
        self.network.load(place)
        reading = readings.setdefault(shard, _Reading())
        readings.move_to_end(shard)
        if len(readings) > REMEMBERED:
            readings.popitem(last=False)
        return self._law(self.network.model, reading, ids, temperature)

    def _law(self, model: Any, reading: _Reading, ids: Sequence[int], temperature: float) -> Floats:
        with torch.inference_mode():
            new = torch.tensor([ids[reading.read :]]).to(device_of(model))
            output = model(input_ids=new, past_key_values=reading.past, use_cache=True)
        reading.past, reading.read = output.past_key_values, len(ids)
        law: Floats = self._probabilities(output.logits[0, -1:], temperature)[0]
        return law

    def _probabilities(self, logits: torch.Tensor, temperature: float) -> Floats:
        """The law of each row of logits over the tokens that may come out."""
        scores: Floats = logits.cpu()[:, self._support].double().numpy() / temperature
        scores -= scores.max(axis=1, keepdims=True)
        laws: Floats = np.exp(scores)
        laws /= laws.sum(axis=1, keepdims=True)
        return laws

    # For the eyes of the holder -----------------------------------------------------------------------------------

    def laws(self, ids: Sequence[int]) -> tuple[Floats, list[Floats]]:
        """The laws of the public model and of every shard for each token of a text but the first. Private."""
        shards = []
        for number in range(self.settings.shards):
            place = self.folder.shard(number)
            if place.exists():
                self.network.load(place)
                shards.append(self._all_laws(self.network.model, ids))
            else:
                shards.append(self._all_laws(self.public.model, ids))
        return self._all_laws(self.public.model, ids), shards

    def _all_laws(self, model: Any, ids: Sequence[int]) -> Floats:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([list(ids[:-1])]).to(device_of(model)), use_cache=False).logits
        return self._probabilities(logits[0], 1.0)


def check_temperature(temperature: float) -> None:
    """Refuse to take the likeliest token: it would be a choice without randomness, hence without any privacy."""
    if not 0.05 <= temperature <= 10:
        raise BadParameterError(
            "impossible-temperature",
            "the temperature of an ensemble lies between 0.05 and 10, not at {temperature:g}: its tokens are drawn, "
            "because the likeliest one would show what a single shard has learned",
            temperature=temperature,
        )
