"""The values that a training clips and their bounds: chosen by the user, or by the model that it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.documents.bounds import Bound, ClipValue, bound_from_dict
from tacit.documents.dp_bart import estimate_clip
from tacit.errors import BadParameterError

if TYPE_CHECKING:
    from tacit.documents.autoencoders.base import Autoencoder
    from tacit.documents.pretraining.corpus import PublicText


@dataclass(frozen=True)
class ClippingSettings:
    """The options of clipping: the constant C, what is clipped (l1, l2, value), or that nothing is."""

    C: float | None = None
    kind: str | None = None
    none: bool = False

    def of_new(self, kind: str, *, noisy: bool) -> Bound | None:
        """The bound of a new model of this kind; only a BART without noise needs none."""
        C = 1.0 if self.C is None and not self.none and (noisy or kind != "bart") else self.C
        return None if C is None else bound_from_dict({"kind": self.kind or usual_bound(kind), "C": C})

    def of(self, model: Autoencoder) -> Bound | None:
        """The bound to train this model on with: its own where nothing else is said."""
        own = model.record.bound
        if self.none:
            return None
        if self.C is None and self.kind is None:
            return model.record.trained_bound()
        kind = self.kind or (own or {"kind": usual_bound(model.kind)})["kind"]
        same = own is not None and own["kind"] == kind
        if self.C is None and not same:
            raise BadParameterError(
                "bound-without-clip",
                "this model was not trained with the bound {kind}: give its C with {option.clip}",
                kind=kind,
            )
        if own is not None and own.get("kept") is not None and not same:
            raise BadParameterError(
                "bound-of-a-pruned-model",
                "a pruned model is clamped by value, not by {kind}: leave out {option.clip_by}",
                kind=kind,
            )
        return bound_from_dict(
            {**((own or {}) if same else {"kind": kind}), **({} if self.C is None else {"C": self.C})}
        )

    def for_noise(self, model: Autoencoder) -> tuple[Bound, bool]:
        """The bound to train with noise, and whether it is of another kind than the model knows."""
        values = dict(model.record.bound or {"kind": usual_bound(model.kind)})
        other = self.kind is not None and self.kind != values["kind"]
        if other:
            values = {"kind": self.kind, "C": values.get("C", 1.0)}
        if self.C is not None:
            values["C"] = self.C
        if "C" not in values:
            raise BadParameterError(
                "noise-without-clip",
                "this model was not trained with clipping: give its C with {option.clip}, for example 0.1",
            )
        return bound_from_dict(values), other

    def for_pruning(self, model: Autoencoder, corpus: PublicText) -> float:
        """C while pruning: the model's own if it is of single values, else one sigma of its values."""
        own = model.record.trained_bound()
        value = own.C if isinstance(own, ClipValue) else None  # the C of a norm is no bound of a value
        return float(self.C or value or model.record.sigma or 2 * estimate_clip(model, corpus).C)


def usual_bound(kind: str) -> str:
    """The bound that a model of this kind is clipped by, if nothing else is said."""
    return "value" if kind == "bart" else "l2"
