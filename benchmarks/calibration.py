"""Words kept and expected distance of textbook, exact and optimal calibration, and the CPU seconds of the search.

    python benchmarks/calibration.py             about three CPU minutes
    python benchmarks/calibration.py --quick     3,000 words only

Every number is computed from the law that is drawn. "stays" is the mean probability that a word of the vocabulary comes
out as itself, which is also what the best attacker guesses; "distance" is the expected distance of the output, over 500
public words. The search is timed as if nothing were kept or bundled.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tacit import build
from tacit.noise.source import public_generator
from tacit.vectors import VectorTable, load_vectors
from tacit.words.calibrated import CalibratedWords
from tacit.words.custext import CusText
from tacit.words.tight import Certificate, calibrate

WORDS = 500


def expected(mechanism: CalibratedWords | CusText) -> tuple[float, float]:
    """The share of words that stay and the expected distance of the output, over a public sample of words."""
    count = len(mechanism.table)
    ids = np.sort(public_generator(0).choice(count, size=min(WORDS, count), replace=False))
    stays, far = [], []
    for start in range(0, len(ids), 50):
        block = ids[start : start + 50]
        law = mechanism.laws_of_draw(block)
        stays += law[np.arange(len(block)), block].tolist()
        points = np.asarray(mechanism.table.vectors, dtype=np.float64)
        for row, word in zip(law, block.tolist(), strict=True):
            reached = np.flatnonzero(row)
            far.append(float(row[reached] @ np.linalg.norm(points[reached] - points[word], axis=1)))
    return float(np.mean(stays)), float(np.mean(far))


def compare(name: str, table: VectorTable, epsilon: float) -> None:
    textbook = build(name, {"epsilon": epsilon, "vectors": table, "calibration": "textbook"})
    exact = build(name, {"epsilon": epsilon, "vectors": table})
    seconds, scales = 0.0, ""
    if isinstance(exact, CalibratedWords):
        started = time.process_time()
        certificate: Certificate = calibrate(exact.geometry(), epsilon, exact.cap)
        seconds = time.process_time() - started
        exact.__dict__["certificate"] = certificate
        scales = f"scale {epsilon / 2:.2f} -> {certificate.scale:.3f} (needs {certificate.needs:.4f})  "
    else:
        started = time.process_time()
        exact.prepare()
        seconds = time.process_time() - started
        scales = f"factor x {float(exact.factors.mean()) / (epsilon / 2):.2f}  "  # type: ignore[attr-defined]
    before, after = expected(textbook), expected(exact)  # type: ignore[arg-type]
    print(
        f"{name:8s} {len(table):6,} words  epsilon {epsilon:<4g} {scales}"
        f"stays {before[0]:.1%} -> {after[0]:.1%}  distance {before[1]:.2f} -> {after[1]:.2f}  {seconds:.1f} CPU s",
        flush=True,
    )


def beside_the_optimum(epsilon: float) -> None:
    table = load_vectors("default", limit=3_000)
    table = table.subset(np.sort(public_generator(0).choice(3_000, size=40, replace=False)))
    distances = {}
    started = time.process_time()
    for name, options in (("textbook", {"calibration": "textbook"}), ("exact", {}), ("optimum", None)):
        chosen = {"epsilon": epsilon, "vectors": table, **(options or {})}
        mechanism = build("optimal" if options is None else "santext", chosen)
        distances[name] = expected(mechanism)[1]  # type: ignore[arg-type]
    seconds = time.process_time() - started
    won = (distances["textbook"] - distances["exact"]) / (distances["textbook"] - distances["optimum"])
    shown = ", ".join(f"{name} {value:.4f}" for name, value in distances.items())
    gain = f"exact wins {won:.2%} of what can be won"
    print(f"40 words  epsilon {epsilon:<4g} distance: {shown}; {gain}  {seconds:.1f} CPU s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3,000 words only")
    quick = parser.parse_args().quick
    small = load_vectors("default", limit=3_000)
    for epsilon in (2.0, 4.0):
        compare("santext", small, epsilon)
    compare("tem", small, 2.0)
    compare("custext", small, 4.0)
    for epsilon in (0.5, 1.0, 2.0):
        beside_the_optimum(epsilon)
    if not quick:
        whole = load_vectors("default")
        for epsilon in (1.0, 2.0, 4.0):
            compare("santext", whole, epsilon)
        compare("custext", whole, 4.0)


if __name__ == "__main__":
    main()
