"""Mechanisms that make the engine's promises visible: their output is nothing but the noise they drew."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import Source


@dataclass(kw_only=True, eq=False)
class NoiseShown(Mechanism):
    """Each text becomes one number per word, drawn from the stream.

    log     a file that gets a line for each text: its hash, its draw and the process that drew it
    mark    a text that holds this word triggers `deed`: "kill" this process (while fewer than `times` did so),
            "fail", "memory" or "interrupt"
    """

    epsilon: float = 1.0
    log: str = ""
    mark: str = ""
    deed: str = ""
    times: int = 1_000
    pause: float = 0.0

    name: ClassVar[str] = "noise-shown"
    title: ClassVar[str] = "Noise shown"
    paper: ClassVar[str] = "none"
    level: ClassVar[str] = "word"
    notion: ClassVar[str] = "pure"
    unit: ClassVar[str] = "token"
    block_characters: ClassVar[int] = 400

    def prepare(self) -> None:
        return

    def guarantee(self, *, secure: bool = True) -> Guarantee:
        return Guarantee(
            notion=Notion.PURE,
            epsilon=self.epsilon,
            unit=Unit.TOKEN,
            adjacency=Adjacency.ANY_TWO,
            mechanism=self.name,
        )

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        time.sleep(self.pause)
        if self.mark and any(self.mark in text for text in texts):
            self._act()
        counts = [len(text.split()) for text in texts]
        draws = [[int(n) for n in source.generator.integers(0, 10**12, count)] for count in counts]
        if self.log:
            with Path(self.log).open("a") as file:
                for text, draw in zip(texts, draws, strict=True):
                    digest = hashlib.sha256(text.encode()).hexdigest()
                    file.write(json.dumps([digest, draw, os.getpid()]) + "\n")
        return Rewritten([" ".join(map(str, draw)) for draw in draws], counts)

    def _act(self) -> None:
        if self.deed == "fail":
            raise KeyError(f"the secret {self.mark}")
        if self.deed == "memory":
            raise MemoryError
        if self.deed == "interrupt":
            raise KeyboardInterrupt
        done = Path(self.log + ".deaths")
        if done.exists() and done.stat().st_size >= self.times:
            return
        with done.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(kw_only=True, eq=False)
class LargeBlocks(NoiseShown):
    """Cheap, with blocks of an ordinary size: what remains is the cost of the engine."""

    name: ClassVar[str] = "noise-shown-large"
    block_characters: ClassVar[int] = 250_000

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        draws = source.generator.integers(0, 10**12, len(texts)).tolist()
        return Rewritten([str(draw) for draw in draws], [1] * len(texts))


for _name in (NoiseShown.name, LargeBlocks.name):
    Mechanism.registry.pop(_name, None)  # fakes are not for the catalog


def draws_by_text(log: Path) -> dict[str, set[tuple[int, ...]]]:
    """All draws that each text ever got, over all runs and processes."""
    results: dict[str, set[tuple[int, ...]]] = {}
    for line in log.read_text().splitlines():
        digest, draw, _ = json.loads(line)
        results.setdefault(digest, set()).add(tuple(draw))
    return results


def processes(log: Path) -> set[int]:
    return {json.loads(line)[2] for line in log.read_text().splitlines()}
