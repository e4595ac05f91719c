"""Public labels: under which of them the features of a row are added up.

    ListedLabels   a public list of names; a row with any other label is left out, or counted as one of the list
    Bins           a numeric column in public bins
    Topics         no label column: the public cell whose center is nearest to the vector of the text

Every rule is a public function of one row. A row that has no label of the rule adds nothing at all, so leaving it out
costs nothing and shows nothing; how many there were is private.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Provenance
from tacit.matching.blocks import encoder_digest, known_encoder, other_version, vectors_of
from tacit.matching.features import LONGEST_CHARACTERS
from tacit.matching.pool import load_pool
from tacit.matching.whole_numbers import whole_vectors
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.text.files import ArrowCell
from tacit.text.files.formats import MISSING

NO_LABEL = -1
"""The place of a row that has no label of the rule."""
MOST_TOPICS = 1_024
ROUNDS = 12
BLOCK = 4_096
"""Texts whose products with all centers are in memory at a time."""
_WHOLE_NUMBER = re.compile(r"[+-]?\d+\.0+")


class PublicLabels(Protocol):
    """Names, and for each row the place of its name."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def places(self, texts: Sequence[str], values: Sequence[object]) -> Ids: ...

    def to_dict(self) -> dict[str, object]: ...

    def arrays(self) -> dict[str, NDArray[np.int16]]:
        """The numbers of the rule that do not fit into JSON."""
        ...

    def provenance(self) -> tuple[Provenance, ...]: ...


def label_name(value: object) -> str:
    """The value of a label cell as a name: without white space around it, whole numbers without a fraction; empty for
    a missing value.

    >>> label_name(" spam "), label_name(3.0), label_name("3.00"), label_name(True), label_name(float("nan"))
    ('spam', '3', '3', 'True', '')
    """
    if isinstance(value, ArrowCell):
        value = value.as_py()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    name = " ".join(str(value).split())
    return name.partition(".")[0] if _WHOLE_NUMBER.fullmatch(name) else name


@dataclass(frozen=True)
class ListedLabels:
    """A public list of labels.

    other     the label of the list as which rows with any other value are counted; None leaves them out
    declared  whether the list was read off the data and declared public
    bought    whether the list was read off the data by a release of its own, which is paid for
    """

    names: tuple[str, ...]
    other: str | None = None
    declared: bool = False
    bought: bool = False
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    kind: ClassVar[str] = "list"

    def __post_init__(self) -> None:
        names = tuple(label_name(name) for name in self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_places", {name: place for place, name in enumerate(names)})
        if not names or "" in names:
            raise BadParameterError(
                "empty-label", "{option.labels} must name at least one label, and none may be empty"
            )
        if len(self._places) != len(names):
            raise BadParameterError(
                "label-twice",
                "a label stands in {option.labels} twice (white space around it, and a fraction of zero, make no other "
                "label): list each once",
            )
        if self.other is not None and label_name(self.other) not in self._places:
            raise BadParameterError("other-not-listed", "{option.other} must be one of {option.labels}")

    def places(self, texts: Sequence[str], values: Sequence[object]) -> Ids:
        fallback = NO_LABEL if self.other is None else self._places[label_name(self.other)]
        places = (self._places.get(label_name(value), fallback) for value in values)
        return np.fromiter(places, dtype=np.int64, count=len(values))

    def to_dict(self) -> dict[str, object]:
        facts: dict[str, object] = {"kind": self.kind, "names": list(self.names), "other": self.other}
        return {**facts, "declared": self.declared, **({"bought": True} if self.bought else {})}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(tuple(values["names"]), values["other"], values["declared"], values.get("bought", False))

    def arrays(self) -> dict[str, NDArray[np.int16]]:
        return {}

    def provenance(self) -> tuple[Provenance, ...]:
        return ()


@dataclass(frozen=True)
class Bins:
    """A numeric column between public edges: [e_0, e_1), [e_1, e_2), …; values beyond the ends belong to the last bins,
    and what is no number to none."""

    edges: tuple[float, ...]

    kind: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False))
        if len(self.edges) < 2 or not rising or not all(map(math.isfinite, self.edges)):
            raise BadParameterError(
                "bad-bins", "{option.bins} are at least two rising numbers, such as {option.bins[0,2,4]}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{low:g} to {high:g}" for low, high in zip(self.edges, self.edges[1:], strict=False))

    def places(self, texts: Sequence[str], values: Sequence[object]) -> Ids:
        numbers = np.array([_number(value) for value in values], dtype=np.float64)
        places = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right").astype(np.int64)
        places[np.isnan(numbers)] = NO_LABEL
        return places

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "edges": list(self.edges)}

    def arrays(self) -> dict[str, NDArray[np.int16]]:
        return {}

    def provenance(self) -> tuple[Provenance, ...]:
        return ()


def _number(value: object) -> float:
    name = label_name(value)
    try:
        return float(name)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class Topics:
    """Public cells in the space of an encoder: a row belongs to the center with the largest product.

    centers   whole numbers (cells, dimension), so that products with whole vectors are exact
    """

    encoder: str
    centers: NDArray[np.int16]
    digest: str
    """Of the encoder."""

    kind: ClassVar[str] = "topics"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"topic {place}" for place in range(1, len(self.centers) + 1))

    def places(self, texts: Sequence[str], values: Sequence[object]) -> Ids:
        encoder = known_encoder(self.encoder)
        if encoder_digest(encoder) != self.digest:
            raise other_version(f"the encoder '{self.encoder}'")
        vectors = vectors_of(encoder, [text[:LONGEST_CHARACTERS] for text in texts], alone=True)
        return nearest_centers(whole_vectors(vectors), self.centers)

    def to_dict(self) -> dict[str, object]:
        centers = hashlib.sha256(np.ascontiguousarray(self.centers).tobytes()).hexdigest()[:32]
        return {"kind": self.kind, "encoder": self.encoder, "digest": self.digest, "centers": centers}

    def arrays(self) -> dict[str, NDArray[np.int16]]:
        return {"centers": self.centers}

    def provenance(self) -> tuple[Provenance, ...]:
        return (Provenance("topics", f"{len(self.centers):,} centers of the general pool"),)


def nearest_centers(whole: Floats, centers: NDArray[np.int16]) -> Ids:
    """The place of the center with the largest product, the first of equals; exact."""
    across = centers.astype(np.float64).T
    places = np.empty(len(whole), dtype=np.int64)
    for start in range(0, len(whole), BLOCK):
        places[start : start + BLOCK] = (whole[start : start + BLOCK] @ across).argmax(axis=1)
    return places


def spherical_centers(whole: Floats, count: int, progress: StepProgress | None = None) -> NDArray[np.int16]:
    """So many centers of whole vectors, by spherical k-means from the first of them, in whole numbers: the same on
    every machine."""
    centers = whole[:count].astype(np.int16)
    for done in range(ROUNDS):
        cells = nearest_centers(whole, centers)
        sums = np.zeros((count, whole.shape[1]), dtype=np.int64)
        np.add.at(sums, cells, whole.astype(np.int64))
        lengths = [max(1, math.isqrt(int(square))) for square in (sums * sums).sum(axis=1)]
        moved = (sums * (1 << 14) // np.array(lengths)[:, None]).astype(np.int16)
        empty = ~sums.any(axis=1)
        moved[empty] = centers[empty]
        if progress is not None:
            progress(done + 1, ROUNDS)
        if (moved == centers).all():
            break
        centers = moved
    return centers


@lru_cache(maxsize=4)
def public_topics(count: int = 64, encoder: str = "static", seed: int = 0) -> Topics:
    """So many centers of the general pool (spherical k-means from a fixed public seed, in whole numbers: the same on
    every machine)."""
    if not 1 <= count <= MOST_TOPICS:
        raise BadParameterError("bad-topics", "{option.topics} must lie between 1 and {most:,}", most=MOST_TOPICS)
    loaded = known_encoder(encoder)
    sentences = load_pool().sentences
    chosen = public_generator(seed).permutation(len(sentences))[: max(16_384, 64 * count)]
    whole = whole_vectors(vectors_of(loaded, [sentences[place] for place in chosen], alone=False))
    centers = spherical_centers(whole, count)
    return Topics(encoder, centers, encoder_digest(loaded))


def rule_from(values: Mapping[str, Any], arrays: Mapping[str, NDArray[np.int16]]) -> PublicLabels:
    """The rule that these values describe."""
    kind = values["kind"]
    if kind == ListedLabels.kind:
        return ListedLabels.from_dict(values)
    if kind == Bins.kind:
        return Bins(tuple(values["edges"]))
    topics = Topics(values["encoder"], arrays["centers"].astype(np.int16), values["digest"])
    if topics.to_dict() != dict(values):
        raise BadInputError("damaged-sketch", "the topics of this sketch were changed: build or copy it again")
    return topics
