"""The versions of the card; the rules by which they change are in docs/guarantee.md."""

from __future__ import annotations

from typing import Final

CARD_VERSION: Final = 2
"""The version that is written."""

READABLE_VERSIONS: Final = (1, 2)
"""Cards of these versions are read."""
