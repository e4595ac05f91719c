"""Feature maps of all kinds from the plain values that a sketch holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.matching.documents import DocumentMap
from tacit.matching.features import L1, FeatureMap
from tacit.matching.pure import PureMap


def map_from(values: Mapping[str, Any]) -> FeatureMap:
    """The feature map that these values describe."""
    if values.get("norm") == L1:
        return PureMap.from_dict(values)
    return DocumentMap.from_dict(values) if "lengths" in values else FeatureMap.from_dict(values)
