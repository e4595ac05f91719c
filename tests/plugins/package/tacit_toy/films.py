"""A data set that lies in the package, and a measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.experiments.data_sets import KnownData

FILMS = KnownData(
    name="toy-films",
    title="Made-up opinions about films",
    columns="text, label",
    license="Apache-2.0",
    source="this package",
    files={
        "test.csv": "df347e0284cadc5cdd4d8b1064b7a24f4dcec1c82e39e1027586ffc0a1044929",
        "train.csv": "d1ba494a3dbf55e2c6aafb3e3b17be3c64b0e9a6de9ebb79907876c9f41c827f",
    },
    folder=Path(__file__).parent / "data" / "toy-films",
)


def overlap(originals: Sequence[str], releases: Sequence[str]) -> list[float]:
    """The share of different words of an original that its release has as well."""
    pairs = zip(originals, releases, strict=True)
    return [len({*a.split()} & {*b.split()}) / max(1, len({*a.split()})) for a, b in pairs]
