"""What exact normal noise costs: `add_gaussian` against the floating-point sampler it replaced.

The old sampler is re-stated here: numpy's ziggurat in double precision, rounded to the same grid. It ends at 12.2
sigma, so it is no alternative; it is the price to compare with. Training noise (single precision with an exact tail)
stands beside numpy's own.

    python benchmarks/gaussian_noise.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from measure import Report, Stopwatch, arguments_parser
from tacit.noise.gaussian import add_gaussian
from tacit.noise.grid import finite_values, multiples, on_grid, step_below
from tacit.noise.normal import normal_noise
from tacit.noise.source import Source

SIZES = {"ADePT state": 512, "bart-20, one text": 3_840, "bart-base, one text": 15_360, "a million": 1_000_000}
TARGET = 10.0
"""Times the cost of the old sampler that is still small beside decoding a text."""
NUMBERS = 2_000_000


def in_floating_point(values: Any, *, sigma: float, source: Source) -> Any:
    step = step_below(sigma * 2.0**-20)
    scaled = multiples(finite_values(values), step)
    whole = np.floor(scaled)
    noise = source.generator.standard_normal(scaled.shape)
    noise *= sigma / step
    noise += scaled - whole
    return on_grid(whole.astype(np.int64) + np.rint(noise).astype(np.int64), step)


def nanoseconds(action: Callable[[], object], size: int) -> float:
    """CPU time for one number."""
    action()
    repeats = max(1, NUMBERS // size)
    watch = Stopwatch()
    with watch.lap("all"):
        for _ in range(repeats):
            action()
    return watch.cpu("all") / (repeats * size) * 1e9


def main() -> None:
    given = arguments_parser(__doc__).parse_args()
    source = Source.from_os()
    rows, facts = [], {}
    for name, size in SIZES.items():
        values = np.linspace(-1.0, 1.0, size)
        new = nanoseconds(lambda values=values: add_gaussian(values, sigma=0.3, source=source), size)  # type: ignore[misc]
        old = nanoseconds(lambda values=values: in_floating_point(values, sigma=0.3, source=source), size)  # type: ignore[misc]
        rows.append([f"{name} ({size:,})", f"{new:.0f}", f"{old:.0f}", f"{new / old:.1f}", f"{TARGET:.0f}"])
        facts[name] = {"size": size, "exact": new, "floating point": old}
    size = 1_000_000
    new = nanoseconds(lambda: normal_noise(size, source), size)
    old = nanoseconds(lambda: source.generator.standard_normal(size, dtype=np.float32), size)
    rows.append([f"training noise ({size:,})", f"{new:.0f}", f"{old:.0f}", f"{new / old:.1f}", "2"])
    facts["training noise"] = {"size": size, "exact tail": new, "floating point": old}
    report = Report("gaussian_noise", facts={"nanoseconds": facts})
    report.table("Normal noise, CPU nanoseconds per number", ["numbers", "exact", "old", "ratio", "target"], rows)
    report.show(given.json)


if __name__ == "__main__":
    main()
