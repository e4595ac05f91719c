"""The exact check of all pairs of a vocabulary, beside the matrix product that it cannot avoid and beside every triple.

"product" is one bare |V| x |V| product of the vectors, in blocks. "every triple" is measured on some pairs and
extrapolated (~) to all of them. Vectors are made up: the default 50 dimensions, and 300. The target is compared with
CPU seconds, which mean the same on a busy machine.

    python benchmarks/audit_claims.py                      # about 3 minutes
    python benchmarks/audit_claims.py --words 5000 --json numbers.json
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from measure import (
    Facts,
    Report,
    Stopwatch,
    answer_part,
    arguments_parser,
    gigabytes,
    peak_memory,
    run_part,
    say,
    seconds,
    verdict,
)

MECHANISMS = ("santext", "tem", "two-budgets")
TARGET_SECONDS, TARGET_BYTES = 120.0, 2e9
PAIRS = 60


def made(name: str, words: int, dimension: int) -> Any:
    import numpy as np

    from tacit import build
    from tacit.vectors import VectorTable

    rng = np.random.default_rng(0)
    spectrum = np.linspace(1.5, 0.5, dimension) * (6.0 / dimension**0.5)
    vectors = (rng.standard_normal((words, dimension)) * spectrum).astype(np.float32)
    vectors.flags.writeable = False
    table = VectorTable([f"w{i}" for i in range(words)], vectors, name="made up", source="benchmark")
    options = {"sensitive_share": 0.5} if name == "two-budgets" else {}
    return build(name, {"epsilon": 2.0, "vectors": table, **options})


def check_part(name: str, words: int, dimension: int) -> Facts:
    from tacit.auditing.claims.claim import claim_of
    from tacit.auditing.claims.radial import check_vocabulary

    mechanism = made(name, words, dimension)
    claim = claim_of(mechanism)
    wall, cpu = time.perf_counter(), time.process_time()
    found = check_vocabulary(mechanism, claim)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "memory": peak_memory(),
        "verdict": found.verdict.value,
        "tightest": [found.tightest, found.tightest_at_most],
        "per distance": [found.steepest, found.steepest_at_most],
        "pairs": found.pairs,
    }


def product_part(words: int, dimension: int) -> Facts:
    import numpy as np

    vectors = np.asarray(made("santext", words, dimension).table.vectors, dtype=np.float64)
    out = np.empty((256, words))
    watch = Stopwatch()
    with watch.lap("product"):
        for start in range(0, words, 256):
            rows = vectors[start : start + 256]
            np.matmul(rows, vectors.T, out=out[: len(rows)])
    return {"cpu": watch.cpu("product")}


def triples_part(words: int, dimension: int) -> Facts:
    import numpy as np

    from tacit.auditing.claims.claim import claim_of
    from tacit.auditing.claims.exact import check_pairs
    from tacit.auditing.claims.laws import MechanismLaw

    mechanism = made("santext", words, dimension)
    claim = claim_of(mechanism)
    pairs = np.stack([np.arange(PAIRS), np.arange(PAIRS) + 1], axis=1)
    cpu = time.process_time()
    check_pairs(MechanismLaw(mechanism), claim, pairs)
    return {"cpu": time.process_time() - cpu, "pairs": PAIRS}


PARTS = {"check": check_part, "product": product_part, "triples": triples_part}


def main() -> None:
    answer_part(PARTS)
    parser = arguments_parser(__doc__)
    parser.add_argument("--words", type=int, default=15_000)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    program = Path(__file__)
    report = Report("audit_claims", notes=[f"{given.words:,} words, {given.threads} threads"])
    rows = []
    for dimension in (50, 300):
        size = {"words": given.words, "dimension": dimension}
        say(f"{dimension} dimensions: product and triples")
        product = run_part(program, "product", size, threads=given.threads)["cpu"]
        triples = run_part(program, "triples", size, threads=given.threads)
        every = triples["cpu"] / triples["pairs"] * given.words * (given.words - 1) / 2
        for name in MECHANISMS if dimension == 50 else MECHANISMS[:1]:
            say(f"{dimension} dimensions: {name}")
            found = run_part(program, "check", {"name": name, **size}, threads=given.threads)
            report.facts[f"{name} {dimension}"] = {**found, "product cpu": product, "triples cpu": every}
            met = verdict(found["cpu"], TARGET_SECONDS), verdict(found["memory"], TARGET_BYTES)
            rows.append(
                [
                    f"{name}, {dimension} dimensions",
                    seconds(found["wall"]),
                    seconds(found["cpu"]),
                    f"{found['cpu'] / product:.1f} x",
                    seconds(every / found["cpu"], extrapolated=True) + " x",
                    gigabytes(found["memory"]),
                    f"120 CPU s {met[0]}, 2 GB {met[1]}",
                ]
            )
    columns = ("exact check, all pairs", "wall s", "CPU s", "product", "every triple", "peak", "target")
    report.table("Exact check of a vocabulary", columns, rows)
    report.show(given.json)


if __name__ == "__main__":
    main()
