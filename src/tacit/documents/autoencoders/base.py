"""The base of autoencoders: a latent of constant shape for every text, and a decoder that sees nothing else.

Length safety. A latent always has the shape (positions, width), for an empty text and for a novel. The encoder may use
the length of its own input (a Hugging Face BART sees the mask of its padding, our own models are trained without any
mask): whatever it computes is bounded and made noisy afterwards. The decoder gets the noisy latent with an all-ones
mask and a fixed largest length; no id, mask or length of the input ever reaches it.

The rule for texts: white space is collapsed, the first 100 characters per position are read, the first pieces that fit
are kept. A text without pieces is the latent of the end mark alone.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tacit import plugins
from tacit.arrays import Floats32, Ids
from tacit.devices import PROCESSOR, chosen_device, device_of
from tacit.documents.autoencoders.built_in import RECORD_FILE, built_in_folder
from tacit.documents.autoencoders.packed import unpacked
from tacit.documents.bounds import Bound, bound_from_dict
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError, require
from tacit.guarantee import Provenance
from tacit.lineage import lineage_of, own_budget
from tacit.plugins import Registry

if TYPE_CHECKING:
    from torch import Tensor, nn

FORMAT = 1
CHARACTERS_PER_POSITION = 100
ENCODED_TOGETHER = 8
"""Rows of every batch that is encoded; the last one is filled up with empty texts."""


@dataclass(kw_only=True)
class Record:
    """The record of what a model was trained on and for; the file `tacit.json` of a checkpoint.

    positions      latent positions, and the largest number of pieces of a text
    corpora        names of the public corpora that the weights, the vocabulary, C and the kept columns come from
    bound          the bound it was trained with: kind, C, kept columns
    sigma          standard deviation of the encoder's values on public text, if it was trained without a bound
    trained_for    the noise it was trained with: noise, delta, and the epsilons; None if there was none
    pruning        pruned columns after each stage, if the model was pruned
    encoder_mask   whether the encoder ignores the padding of its own input
    commands       how to make it again
    results        what was measured on held-out public text
    private        what paid for weights that have read private text: "" if nothing did, None if they have not
    """

    kind: str
    positions: int
    corpora: list[str] = field(default_factory=list)
    bound: dict[str, Any] | None = None
    sigma: float | None = None
    trained_for: dict[str, Any] | None = None
    pruning: dict[str, Any] | None = None
    encoder_mask: bool = False
    commands: list[str] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    private: str | None = None

    def trained_bound(self) -> Bound | None:
        return None if self.bound is None else bound_from_dict(self.bound)

    def epsilons(self) -> list[float]:
        """The epsilons the model was trained for, from small to large."""
        return sorted(float(epsilon) for epsilon in (self.trained_for or {}).get("epsilons", ()))

    def provenance(self, name: str) -> tuple[Provenance, ...]:
        source = "; ".join(self.corpora) or "unknown text"
        if self.private is not None:
            return (Provenance(f"weights of {name}", source, public=False, paid_by=self.private or None),)
        return (Provenance(f"weights, vocabulary, C and kept columns of {name}", source),)

    def check_paid(self, name: str) -> None:
        """Refuse weights that may repeat private text, before anything is made with them."""
        if self.private == "":
            raise NoGuaranteeError(
                "model-has-no-guarantee",
                "{name} has no guarantee ({reason}): it was learned from private data, and whatever is made with it "
                "may repeat them; take a model of public text, or train it with an epsilon",
                name=name,
                reason="; ".join(self.corpora),
            )

    def write(self, folder: Path) -> None:
        data = {"format": FORMAT, **asdict(self)}
        (folder / RECORD_FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Record:
        path = folder / RECORD_FILE
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.pop("format") != FORMAT:
                raise BadInputError(
                    "model-of-another-version",
                    "{path} was written by another version of Tacit: train the model again",
                    path=path,
                )
            record = cls(**data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInputError(
                "damaged-model", "{path} is damaged: copy the whole checkpoint again, or train it again", path=path
            ) from error
        if record.kind not in AUTOENCODERS:
            raise BadInputError(
                "unknown-autoencoder",
                "{path} is a model of the kind '{kind}', and there are only {known}: install the plug-in that has it, "
                "or name its file with {option.plugin}",
                path=str(path),
                kind=record.kind,
                known=", ".join(AUTOENCODERS),
            )
        return record


class Autoencoder(ABC):
    """Text to latent and back. `encode` and `decode` speak numpy; `latents` and `loss` are for training in torch."""

    kind: ClassVar[str]
    mechanisms: ClassVar[tuple[str, ...]]
    """The latent mechanisms that work with it, by name. `adept` clips the whole latent and takes any."""
    record: Record

    @property
    def positions(self) -> int:
        """Positions of the latent, the same for every text."""
        return self.record.positions

    @property
    @abstractmethod
    def width(self) -> int:
        """Dimensions of one position of the latent."""

    # What training in torch needs. A model that brings its own `encode` and `decode` can do without.

    @property
    def length(self) -> int:
        """The largest number of pieces of a text, end mark included."""
        self._refuse_training()

    @property
    def module(self) -> nn.Module:
        """The torch module with all weights."""
        self._refuse_training()

    def ids(self, texts: Sequence[str]) -> Ids:
        """Piece ids of constant shape (texts, length): pieces, end mark, padding."""
        self._refuse_training()

    def latents(self, ids: Tensor) -> Tensor:
        """Tensor of latents (texts, positions, width) from a tensor of ids, with gradients."""
        self._refuse_training()

    def states(self, latents: Tensor, ids: Tensor) -> Tensor:
        """Tensor of decoder states (texts, length, ...) given the latents and the right pieces before."""
        self._refuse_training()

    def scores(self, states: Tensor) -> Tensor:
        """Next-piece scores of decoder states."""
        self._refuse_training()

    @property
    def padding_id(self) -> int:
        self._refuse_training()

    @property
    def pieces(self) -> int:
        """Size of the vocabulary."""
        self._refuse_training()

    def generate(self, latents: Tensor, beams: int) -> list[str]:
        """Texts from a tensor of latents: nothing else is looked at."""
        self._refuse_training()

    def _refuse_training(self) -> NoReturn:
        raise BadParameterError(
            "untrainable-autoencoder",
            "a model of the kind '{kind}' cannot be trained here: use it as it is",
            kind=self.kind,
        )

    @abstractmethod
    def save_weights(self, folder: Path) -> None: ...

    def save_small(self, folder: Path) -> None:
        """Replace saved weights by such in 8 bits, where a kind can be loaded from these."""
        raise BadParameterError(
            "bits-not-supported",
            "a model of the kind '{kind}' is saved in 16 bits at least: use {option.half}",
            kind=self.kind,
        )

    @classmethod
    @abstractmethod
    def load_weights(cls, folder: str, record: Record) -> Self: ...

    # For users ------------------------------------------------------------------------------------------------

    def encode(self, texts: Sequence[str]) -> Floats32:
        """Latents of shape (texts, positions, width), computed in batches of one constant shape: with few rows a
        processor adds up in another order, and how many texts are beside a text must not show in its latent."""
        torch = _torch()
        encoded = np.empty((len(texts), self.positions, self.width), dtype=np.float32)
        self.module.eval()
        for start in range(0, len(texts), ENCODED_TOGETHER):
            part = list(texts[start : start + ENCODED_TOGETHER])
            filled = part + [""] * (ENCODED_TOGETHER - len(part))
            with torch.inference_mode():
                ids = torch.from_numpy(self.ids(filled)).to(device_of(self.module))
                latents = self.latents(ids).float().cpu().numpy()
            encoded[start : start + len(part)] = latents[: len(part)]
        return encoded

    def decode(self, latents: NDArray[np.floating], *, beams: int = 1) -> list[str]:
        """Texts from latents alone, whose values may be anything finite."""
        torch = _torch()
        if len(latents) == 0:
            return []
        limits = np.finfo(np.float32)
        values = np.clip(np.asarray(latents, dtype=np.float64), limits.min / 1e6, limits.max / 1e6)
        self.module.eval()
        with torch.inference_mode():
            return self.generate(torch.from_numpy(values.astype(np.float32)).to(device_of(self.module)), beams)

    def loss(self, latents: Tensor, ids: Tensor, weights: Tensor | None = None) -> Tensor:
        """Mean cross-entropy of the pieces of texts, given their latents; padding does not count.

        weights   of each piece of the vocabulary in that mean; all count the same by default
        """
        longest = int((ids != self.padding_id).sum(dim=1).max())
        ids = ids[:, :longest]
        counted = ids != self.padding_id
        scores = self.scores(self.states(latents, ids)[counted])
        loss: Tensor = _torch().nn.functional.cross_entropy(scores, ids[counted], weight=weights)
        return loss

    def save_pretrained(self, folder: str | Path, *, half: bool = False, eight_bits: bool = False) -> None:
        """Weights (in 16 bits if `half`, an ADePT also in 8), vocabulary and record in one folder."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        kept = {name: value.clone() for name, value in self.module.state_dict().items()} if half else {}
        try:
            if half:
                self.module.half()
            self.save_weights(target)
            if eight_bits:
                self.save_small(target)
        finally:
            if half:
                self.module.float().load_state_dict(kept)
        self.record.write(target)

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Self:
        """A model by built-in name, folder, or (BART) hub name."""
        autoencoder = load_for_release(name)
        if not isinstance(autoencoder, cls):
            raise BadInputError(
                "wrong-kind-of-model",
                "'{name}' is a model of the kind '{kind}', and one of the kind '{needed}' is needed: choose another "
                "model, or train one with 'tacit pretrain autoencoder' ({option.kind} {needed})",
                name=_shown(name),
                kind=autoencoder.kind,
                needed=cls.kind,
            )
        return autoencoder


def _is_autoencoder(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Autoencoder)


AUTOENCODERS: Registry[type[Autoencoder]] = Registry(
    plugins.AUTOENCODERS,
    "kind of autoencoder",
    {
        "bart": "tacit.documents.autoencoders.bart:BartAutoencoder",
        "narrow": "tacit.documents.autoencoders.narrow:NarrowAutoencoder",
        "bottleneck": "tacit.documents.autoencoders.bottleneck:BottleneckAutoencoder",
        "adept": "tacit.documents.autoencoders.lstm:LstmAutoencoder",
    },
    _is_autoencoder,
)
"""All kinds of autoencoders. The modules of our own need torch, so they are imported on first use."""


def readable(text: str, length: int) -> str:
    """The part of a text that is read: white space collapsed, 100 characters per position."""
    return " ".join(text[: CHARACTERS_PER_POSITION * length].split())


def load_autoencoder(name: str | Path) -> Autoencoder:
    """A model by built-in name (`bart-20`), by folder, or a BART of the Hugging Face hub by name."""
    folder = built_in_folder(str(name))
    source = str(folder) if folder is not None else str(name)
    path = Path(source)
    if path.is_dir() and (path / RECORD_FILE).exists():
        record = Record.read(path)
    elif path.is_dir() and not (path / "config.json").exists():
        raise BadInputError(
            "no-such-model",
            "the folder '{folder}' holds no model: it needs {file} (made by 'tacit pretrain') or the config.json of "
            "a Hugging Face BART",
            folder=path.name,
            file=RECORD_FILE,
        )
    else:
        record = _published(path)
    if AUTOENCODERS.is_own(record.kind):
        _torch()
    if not path.is_dir():
        return _on_device(AUTOENCODERS[record.kind].load_weights(source, record))
    with unpacked(path) as whole:
        return _on_device(AUTOENCODERS[record.kind].load_weights(str(whole), record))


def _on_device(autoencoder: Autoencoder) -> Autoencoder:
    """The same model where the job computes."""
    device = chosen_device()
    if device.type != PROCESSOR:  # where weights are loaded anyway; a plug-in may have no module to move
        autoencoder.module.to(device)
    return autoencoder


def load_for_release(name: str | Path) -> Autoencoder:
    """The same for whatever texts and models are made with: refused if it may repeat private text."""
    autoencoder = load_autoencoder(name)
    autoencoder.record.check_paid(_shown(name))
    return autoencoder


def _published(path: Path) -> Record:
    """The record of a model that has none: what its card says, or else what it was published with."""
    known = lineage_of(path)
    corpora, private = [f"what {path.name} was published with"], None
    if known.unpaid is not None:
        corpora, private = [known.unpaid], ""
    elif known.paid is not None:
        corpora, private = [f"private text read by {path.name}"], own_budget(known.paid)
    elif known.public is not None:
        corpora = [f"{known.public}, declared public"]
    return Record(kind="bart", positions=20, encoder_mask=True, corpora=corpora, private=private)


def _shown(name: str | Path) -> str:
    return Path(str(name)).name


def _torch() -> ModuleType:
    return require("torch", extra="documents", purpose="a document-level model")
