"""The base of document-level mechanisms: any two documents are neighbors, and one draw covers a whole document.

    text -- public function -> bounded summary -- draw -> noisy summary -- public function -> text

Only the draw is private, and it is made once per document. What comes after it sees neither the text nor anything
derived from it, not even its length: an empty text and a novel are rewritten by the same steps, in the same shapes.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from tacit.devices import PROCESSOR, check_device, computing_on
from tacit.errors import BadParameterError, TacitWarning
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit, VoidReason
from tacit.mechanism import TEST_SEED_REASON, Mechanism, Rewritten
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.reading import Reading, read_by_pieces


@dataclass(kw_only=True, eq=False)
class DocumentMechanism(Mechanism):
    """Parameters of all document mechanisms.

    epsilon      the budget of one document
    batch_size   how many texts are worked on together; no influence on the law of the output
    device       where the models of the mechanism compute: cpu, cuda, cuda:N, mps, or auto
    """

    batch_size: int = parameter(32, low=1, service_most=256)
    device: str = PROCESSOR

    level: ClassVar[str] = "document"
    unit: ClassVar[str] = "document"
    block_characters: ClassVar[int] = 50_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(20.0, 1.0, 500.0)

    # To write in a mechanism --------------------------------------------------------------------------------

    @abstractmethod
    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        """A released text for each text, each with fresh noise."""

    @abstractmethod
    def promise(self) -> Guarantee:
        """The guarantee of one document, from the numbers that `rewrite_batch` uses."""

    def load_public(self) -> None:
        """Load and check the public parts: models, codebooks, intervals."""

    def note(self) -> str | None:
        """A warning for the user about these parameters, if there is one."""
        return None

    # The pipeline -------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        super().check_parameters()
        check_device(self.device)

    def on_device(self) -> AbstractContextManager[None]:
        """While models are loaded: they go where this mechanism computes."""
        return computing_on(self.device)

    def prepare(self) -> None:
        _ = self._prepared

    @cached_property
    def _prepared(self) -> bool:
        """Loaded, and the user warned once."""
        with self.on_device():
            self.load_public()
        if note := self.note():
            warnings.warn(note, TacitWarning, stacklevel=3)
        return True

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        self.prepare()
        released: list[str] = []
        for start in range(0, len(texts), self.batch_size):
            released += self.rewrite_batch(texts[start : start + self.batch_size], source)
        return Rewritten(released, [1] * len(released))

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)

    @property
    def reader(self) -> tuple[Any, int] | None:
        """The tokenizer that cuts a text into pieces, and how many of them are read; None: nothing is cut."""
        return None

    def reading(self, texts: Sequence[str]) -> Reading:
        reader = self.reader
        return super().reading(texts) if reader is None else read_by_pieces(*reader, texts)

    # The guarantee ------------------------------------------------------------------------------------------

    def guarantee(self, *, secure: bool | None = None) -> Guarantee:
        promised = self.promise()
        is_secure = self.seed is None if secure is None else secure
        return promised if is_secure else promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)

    def _promise(self, notion: Notion, epsilon: float, **more: Any) -> Guarantee:
        """A guarantee with everything that is the same for all document mechanisms filled in."""
        defaults: dict[str, Any] = {
            "unit": Unit.DOCUMENT,
            "adjacency": Adjacency.ANY_TWO,
            "mechanism": f"{self.title} ({self.name}; {self.paper})",
            "parameters": self._shown_parameters(),
            "assumptions": (
                "the noise comes from a secret random key of the operating system",
                *more.pop("assumptions", ()),
            ),
        }
        return Guarantee(notion=notion, epsilon=epsilon, **{**defaults, **more})

    def _shown_parameters(self) -> dict[str, object]:
        hidden = {"epsilon", "seed", "batch_size", "device"}
        given = ((item.name, getattr(self, item.name)) for item in fields(self) if item.name not in hidden)
        return {name: value for name, value in given if value is not None}


def check_count(name: str, value: int) -> None:
    """Refuses a parameter that is no whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadParameterError(
            "impossible-count", "{name} must be a whole number of at least 1, not {value}", name=name, value=value
        )
