"""A look at the first texts of a run, for their owner: does the mechanism know their language, and does it read
them to the end?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tacit.mechanism import Mechanism
from tacit.reading import Reading

SAMPLE_TEXTS: Final = 500
SAMPLE_CHARACTERS: Final = 200_000


class Notices:
    """Warnings about the texts of a run, given once: as soon as the sample is full, or at the end.

    The sample is the first texts, and the warnings go to `warn`, which must lead to the holder's own terminal.
    """

    def __init__(self, mechanism: Mechanism, warn: Callable[[str], None]) -> None:
        self._mechanism = mechanism
        self._warn = warn
        self._reading = Reading()
        self._characters = 0
        self._open = True

    def add(self, texts: list[str]) -> None:
        """Look at the texts of a block."""
        if not self._open:
            return
        sample = []
        for text in texts[: SAMPLE_TEXTS - self._reading.documents]:
            if self._characters >= SAMPLE_CHARACTERS:
                break
            sample.append(text)
            self._characters += len(text)
        self._reading = self._reading.plus(self._mechanism.reading(sample))
        if self._reading.documents >= SAMPLE_TEXTS or self._characters >= SAMPLE_CHARACTERS:
            self.finish()

    def finish(self) -> None:
        """Say what was found."""
        if self._open:
            self._open = False
            for sentence in self._reading.warnings():
                self._warn(sentence)
