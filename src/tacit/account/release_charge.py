"""The budget of one release, as the code that draws its noise sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tacit.guarantee import Guarantee


@dataclass(frozen=True)
class ReleaseCharge:
    """The budget, set aside before the noise is drawn (`reserve` may refuse), and spent when the release is there.
    By default nothing is charged."""

    reserve: Callable[[Guarantee], None] = field(default=lambda promised: None)
    commit: Callable[[], None] = field(default=lambda: None)
