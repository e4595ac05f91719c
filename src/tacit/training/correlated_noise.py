"""The correlated noise of `tacit.account.matrix`, one round at a time.

The round t of a matrix mechanism gets the noise y_t with running sums B z: for a lower-triangular factor y = C^-1 z. No
round needs the whole matrix:

    Toeplitz    y_t = z_t - sum over j < bands of c_j y_{t-j}                     the last bands - 1 vectors y
    Buffered    y_t = z_t - sum w_i s_i,   then s_i <- l_i s_i + y_t              one vector s_i for each decay
    Tree        y_t = new node - the nodes that it replaces                        one vector for each level

z is drawn from the key, the round and the label, so the noise of a round is the same whenever it is asked for. A stream
that is asked for a later round (a resumed run) draws the rounds before again, or goes on from a state: the vectors that
a Toeplitz stream keeps, encrypted with bytes that follow from the key and the round. A checkpoint is written many times
and leaves copies on the disk; without the key, which is destroyed at the end, such a copy says nothing about the noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.account.matrix import Buffered, Toeplitz
from tacit.account.tree import Tree
from tacit.arrays import Floats32
from tacit.noise.normal import normal_noise
from tacit.noise.source import StreamKey

ROUND, VECTORS = "noise/round", "noise/vectors"


class NoiseStream(ABC):
    """Noise vectors of `size` numbers, for a factor C and z of variance 1."""

    def __init__(self, size: int, key: StreamKey, label: bytes) -> None:
        self.size, self.key, self.label = size, key, label
        self.restart()

    def at(self, step: int) -> Floats32:
        """The noise of this round."""
        if step < self.next:
            self.restart()
        while self.next < step:
            self._go_on()
        return self._go_on()

    def restart(self) -> None:
        self.next = 0
        self.forget()

    def _go_on(self) -> Floats32:
        made = self.make(self.next)
        self.next += 1
        return made

    def normal(self, step: int, part: bytes = b"") -> Floats32:
        return normal_noise(self.size, self.key.stream(step, self.label + part))

    @abstractmethod
    def forget(self) -> None:
        """Back to before the first round."""

    @abstractmethod
    def make(self, step: int) -> Floats32:
        """The noise of the next round."""

    @property
    @abstractmethod
    def vectors(self) -> int:
        """How many vectors are kept now."""


class ToeplitzNoise(NoiseStream):
    def __init__(self, factor: Toeplitz, size: int, key: StreamKey, label: bytes) -> None:
        self.factor = factor
        super().__init__(size, key, label)

    def forget(self) -> None:
        self.past: deque[Floats32] = deque(maxlen=self.factor.bands - 1)

    def make(self, step: int) -> Floats32:
        made = self.normal(step)
        for coefficient, before in zip(self.factor.coefficients[1:], self.past, strict=False):
            made -= np.float32(coefficient) * before
        self.past.appendleft(made)
        return made.copy()

    @property
    def vectors(self) -> int:
        return len(self.past)

    def state(self) -> dict[str, Tensor]:
        """The next round, and the vectors that it needs, which only the key can read."""
        kept = np.stack(self.past) if self.past else np.zeros((0, self.size), dtype=np.float32)
        return {ROUND: torch.tensor(self.next), VECTORS: torch.from_numpy(self._crypted(kept.view(np.uint8)))}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state of this stream; from the beginning where there is none."""
        if ROUND not in state:
            return
        self.next = int(state[ROUND])
        kept = self._crypted(state[VECTORS].numpy()).view(np.float32)
        self.past.clear()
        self.past.extend(vector.copy() for vector in kept)

    def _crypted(self, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The bytes with those of a stream of this round mixed in, which a second time takes out again."""
        pad = self.key.stream(self.next, self.label + b"/state").generator.bytes(values.size)
        return np.bitwise_xor(values, np.frombuffer(pad, dtype=np.uint8).reshape(values.shape))


class BufferedNoise(NoiseStream):
    def __init__(self, factor: Buffered, size: int, key: StreamKey, label: bytes) -> None:
        self.factor = factor
        super().__init__(size, key, label)

    def forget(self) -> None:
        self.buffers = [np.zeros(self.size, dtype=np.float32) for _ in self.factor.decays]

    def make(self, step: int) -> Floats32:
        made = self.normal(step)
        for weight, buffer in zip(self.factor.weights, self.buffers, strict=True):
            made -= np.float32(weight) * buffer
        for decay, buffer in zip(self.factor.decays, self.buffers, strict=True):
            buffer *= np.float32(decay)
            buffer += made
        return made

    @property
    def vectors(self) -> int:
        return len(self.buffers)


class TreeNoise(NoiseStream):
    def __init__(self, factor: Tree, rounds: int, size: int, key: StreamKey, label: bytes) -> None:
        self.factor, self.span = factor, factor.span(rounds)
        super().__init__(size, key, label)

    def forget(self) -> None:
        self.stack: list[tuple[int, Floats32]] = []

    def make(self, step: int) -> Floats32:
        place = step % self.span
        if place == 0:
            self.stack = []
        level, node = 0, self.normal(step, b"/0")
        change = node.copy()
        while self.stack and self.stack[-1][0] == level:
            _, left = self.stack.pop()
            change -= left
            level += 1
            below = left + node
            own = self.normal(step, b"/%d" % level)
            weight = np.float32(self.factor.node_variance(level))
            new = weight * own + (np.float32(1.0) - weight) * below if self.factor.efficient else own
            change += new - node
            node = new
        self.stack.append((level, node))
        return change

    @property
    def vectors(self) -> int:
        return len(self.stack)


def noise_stream(
    factor: Toeplitz | Buffered | Tree, rounds: int, size: int, key: StreamKey, label: bytes
) -> NoiseStream:
    if isinstance(factor, Tree):
        return TreeNoise(factor, rounds, size, key, label)
    if isinstance(factor, Buffered):
        return BufferedNoise(factor, size, key, label)
    return ToeplitzNoise(factor, size, key, label)
