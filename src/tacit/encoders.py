"""Sentence encoders by name: the one that comes with Tacit, those of plug-ins, and Hugging Face models.

    static          word vectors averaged (`tacit.matching.encoder`): numpy and scipy alone, exact for any batch
    static-balanced the same in another geometry (`tacit.matching.encoder_balanced`), for codebooks
    minilm          all-MiniLM-L6-v2 by torch (`tacit.documents.encoder`), a folder, or a name on the model hub
    another name    what a plug-in has registered in the group `tacit.encoders`

An encoder is a public function from a text to a vector of length 1 (or 0, for a text in which it knows nothing).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tacit import plugins
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.lineage import Lineage, lineage_of
from tacit.needs import Ability, needs_of_encoder
from tacit.plugins import Registry
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from tacit.arrays import Floats32


class Encoder(Protocol):
    """An encoder as a mechanism needs it: a name for its card, and vectors.

    An encoder whose vectors are the same bit for bit whatever texts are beside them says so by an attribute
    `batch_independent = True`; of any other one only `encode_alone` is a function of the text alone. One that has an
    attribute `digest` is recognized by it, otherwise by its name.
    """

    name: str

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32: ...

    def encode_alone(self, text: str) -> Floats32: ...


def _makes_encoders(thing: object) -> bool:
    return callable(thing)


ENCODERS: Registry[Callable[[], Encoder]] = Registry(
    plugins.ENCODERS,
    "sentence encoder",
    {
        "static": "tacit.matching.encoder:StaticEncoder",
        "static-balanced": "tacit.matching.encoder_balanced:BalancedEncoder",
    },
    _makes_encoders,
)
"""Name to a function (or class) that makes an encoder of this name. The encoder may have `provenance()`, a line for the
card; without it the encoder is taken as public. The function may have `abilities`, what must be installed for it."""

PARTS: Final = ("name", "dimension", "encode", "encode_alone")
"""What every encoder has."""

HUGGING_FACE = ("tacit.documents.encoder", "SentenceEncoder")
"""What reads every other name; imported on first use, because it needs torch."""


def load_encoder(name: str | Path, *, batch_size: int = 64) -> Encoder:
    """A sentence encoder by its registered name, or as `tacit.documents.encoder.SentenceEncoder` takes it."""
    if str(name) in ENCODERS:
        return _registered(str(name))
    module, attribute = HUGGING_FACE
    made: Encoder = getattr(importlib.import_module(module), attribute)(name, batch_size=batch_size)
    return made


def _registered(name: str) -> Encoder:
    """The encoder of a registered name. Codebooks, sketches and cards find it again by its own name, so that has to be
    the same."""
    made = ENCODERS[name]()
    missing = [part for part in PARTS if not hasattr(made, part)]
    if missing or made.name != name:
        raise BadInputError(
            "broken-encoder",
            "the plug-in '{name}' makes no sentence encoder of this name (it needs {parts}, and its own name has to be "
            "'{name}'): correct the plug-in",
            name=name,
            parts=", ".join(PARTS),
        )
    return made


def encoder_needs(name: str) -> list[Ability]:
    """The abilities that must be installed for a sentence encoder; a plug-in lists them in its attribute
    `abilities`."""
    return list(getattr(ENCODERS[name], "abilities", ())) if name in ENCODERS else needs_of_encoder(name)


def encoder_provenance(name: str) -> Provenance:
    """The line of a card that uses the encoder; refused if its weights may repeat private text."""
    if name in ENCODERS:
        own: Callable[[], Provenance] | None = getattr(_registered(name), "provenance", None)
        return Provenance("sentence encoder", f"{name}, of a plug-in") if own is None else own()
    known = Lineage() if name == "minilm" else lineage_of(name)
    return known.provenance("sentence encoder", name)


def is_batch_independent(encoder: Encoder) -> bool:
    """Whether the vector of a text is the same bit for bit in every batch."""
    return bool(getattr(encoder, "batch_independent", False))
