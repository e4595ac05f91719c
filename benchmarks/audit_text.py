"""Inversion of all words of SST-2 train, released by SanText, with the exact posterior.

Everything that the attack does is timed: aligning both texts, the pass over the vocabulary (14,700 words of 300
dimensions) that finds the most probable original of every released word, and the intervals. The baseline in the same
run is the bare float64 product of the vocabulary with itself, in the same blocks, and one exp over it: no exact
posterior of this law can do without. Goal: under 60 CPU seconds.

    python benchmarks/audit_text.py
    python benchmarks/audit_text.py --epsilon 3 --mechanism santext+
"""

from __future__ import annotations

from corpus import FROM_CORPUS, MADE_UP, SMALL, sentences, vectors_path
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

TARGET_CPU = 60.0


def invert_all(name: str, epsilon: float, vectors: str) -> Facts:
    import numpy as np

    from tacit.auditing.text import inversion
    from tacit.auditing.text.pairs import TextPairs
    from tacit.catalog import build
    from tacit.noise.source import Source
    from tacit.words.base import BLOCK_CELLS

    mechanism = build(name, {"vectors": vectors, "epsilon": epsilon})
    assert isinstance(mechanism, inversion.WordMechanism)
    mechanism.prepare()
    originals = sentences()
    released: list[str] = []
    for start in range(0, len(originals), 20_000):
        released += mechanism.rewrite_texts(originals[start : start + 20_000], Source.from_os()).texts
    watch = Stopwatch()
    with watch.lap("inversion"):
        prior = inversion.frequency_prior(mechanism.vocabulary)
        found = inversion.invert(TextPairs(originals, released), mechanism, prior)
    peak = peak_memory()
    rows = np.asarray(mechanism.table.vectors, dtype=np.float64)
    right = np.ascontiguousarray(rows.T)
    height = BLOCK_CELLS // len(rows)
    buffer = np.empty((height, len(rows)))
    with watch.lap("bare"):
        for start in range(0, len(rows), height):
            block = buffer[: len(rows[start : start + height])]
            np.matmul(rows[start : start + height], right, out=block)
            np.exp(block, out=block)
    return {
        "tokens": found.tokens,
        "laps": watch.as_facts(),
        "peak memory": peak,
        "bayes": found.bayes.numbers(),
        "nearest": found.nearest.numbers(),
        "left out": found.left_out,
    }


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--mechanism", default="santext", help="a word mechanism with a closed form (default santext)")
    parser.add_argument("--epsilon", type=float, action="append", help="may be repeated (default 0.01, 3 and 1000)")
    given = parser.parse_args()
    vectors = str(vectors_path(SMALL))
    report = Report("audit_text", notes=[MADE_UP, FROM_CORPUS, "one BLAS thread"])
    rows, measured = [], []
    for epsilon in given.epsilon or [0.01, 3.0, 1000.0]:
        say(f"{given.mechanism}, epsilon {epsilon:g}")
        facts = run_part(__file__, "invert", {"name": given.mechanism, "epsilon": epsilon, "vectors": vectors})
        measured.append({"epsilon": epsilon, **facts})
        took = facts["laps"]["inversion"]["cpu"]
        rows.append(
            [
                f"{epsilon:g}",
                f"{facts['tokens']:,}",
                seconds(took),
                f"{took / facts['laps']['bare']['cpu']:.2f}",
                gigabytes(facts["peak memory"]),
                f"{facts['bayes']['rate']:.2%}",
                f"{facts['nearest']['rate']:.2%}",
                f"{facts['bayes']['floor']:.2%}",
                verdict(took, TARGET_CPU),
            ]
        )
    report.table(
        f"Inversion of {given.mechanism} with the exact posterior; target: < {TARGET_CPU:g} CPU s",
        ("epsilon", "tokens", "CPU s", "/ bare", "peak\nmemory", "Bayes", "nearest", "blind", "target"),
        rows,
    )
    report.facts = {"mechanism": given.mechanism, "runs": measured}
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"invert": invert_all})
    main()
