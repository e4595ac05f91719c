"""A vocabulary of 88,000 words: peak memory, and how the cost grows with the number of distinct words in use.

No mechanism may hold an array of 88,000 x 88,000 cells (62 GB in float64). For the exponential mechanisms, the cost
should grow with (distinct words in use) x (vocabulary), so CPU nanoseconds per such cell should not grow; the texts
are SST-2 with only its most frequent words left, so that the number of distinct words is known. For the noise
mechanisms the cost is per token, here on a sample.

"peak, rewriting" is a whole run up to the rewritten text; "peak, with card" includes the numbers on the privacy card
(the exact diameter of the vocabulary), computed once per vector file and then kept.

    python benchmarks/large_vocabulary.py
    python benchmarks/large_vocabulary.py --distinct 1000,14000 --json numbers.json
"""

from __future__ import annotations

from typing import Any

from corpus import FROM_CORPUS, LARGE, MADE_UP, sentences, some_sentences, vectors_path, vocabulary_path
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

MEMORY_TARGET = 1.5e9
EXPONENTIAL = {"santext": {"epsilon": 3.0}, "santext+": {"epsilon": 3.0}, "custext": {"epsilon": 3.0}}
NOISE = {"laplace": {"epsilon": 20.0}, "vickrey": {"epsilon": 20.0}, "truncated-gumbel": {"epsilon": 40.0}}


def measure_mechanism(name: str, options: Facts, vectors: str, distinct: int | None, tokens: int | None) -> Facts:
    import numpy as np

    from tacit.catalog import build
    from tacit.noise.source import Source

    texts = texts_of(vectors, distinct, tokens)
    watch = Stopwatch()
    mechanism: Any = build(name, {"vectors": vectors, **options})
    with watch.lap("preparation"):
        mechanism.prepare()
    used: set[int] = set()
    draw = mechanism.draw

    def watched_draw(ids: Any, source: Source) -> Any:
        used.update(np.unique(ids).tolist())
        with watch.lap("private draw"):
            return draw(ids, source)

    mechanism.draw = watched_draw
    with watch.lap("rewriting"):
        units = mechanism.rewrite_texts(texts, Source.from_os()).units
    peak = peak_memory()
    with watch.lap("card"):
        mechanism.guarantee()
    return {
        "name": name,
        "tokens": sum(units),
        "distinct": len(used),
        "vocabulary": len(mechanism.table),
        "peak, rewriting": peak,
        "peak, with card": peak_memory(),
        "laps": watch.as_facts(),
    }


def texts_of(vectors: str, distinct: int | None, tokens: int | None) -> list[str]:
    """A sample of SST-2, or all of it with only the most frequent words left in it."""
    from pathlib import Path

    from tacit.text.tokens import split

    if distinct is None:
        return some_sentences(tokens)
    words = set(vocabulary_path(Path(vectors)).read_text(encoding="utf-8").split("\n")[:distinct])
    return [" ".join(word for word in split(sentence) if word in words) for sentence in sentences()]


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--distinct", default="1000,3500,7000,14000", help="numbers of distinct words (santext)")
    parser.add_argument("--tokens", type=int, default=10_000, help="tokens for the noise mechanisms")
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads")
    given = parser.parse_args()
    report = Report("large_vocabulary", notes=[MADE_UP, FROM_CORPUS, "words beyond those of SST-2 are made up too"])
    vectors = str(vectors_path(LARGE))
    runs: list[tuple[str, Facts, int | None]] = [
        ("santext", EXPONENTIAL["santext"], int(number)) for number in given.distinct.split(",")
    ]
    runs += [(name, options, 3500) for name, options in EXPONENTIAL.items() if name != "santext"]
    runs += [(name, options, None) for name, options in NOISE.items()]
    measured = []
    for name, options, distinct in runs:
        say(f"{name}: {f'{distinct:,} distinct words' if distinct else f'{given.tokens:,} tokens'}")
        arguments = {"name": name, "options": options, "vectors": vectors, "distinct": distinct, "tokens": given.tokens}
        measured.append(run_part(__file__, "mechanism", arguments, threads=given.threads))
    rows = []
    for facts in measured:
        laps = facts["laps"]
        draw = laps["private draw"]["cpu"]
        cells = facts["distinct"] * facts["vocabulary"]
        rows.append(
            [
                facts["name"],
                f"{facts['tokens']:,}",
                f"{facts['distinct']:,}",
                seconds(laps["preparation"]["cpu"]),
                seconds(laps["rewriting"]["cpu"]),
                f"{draw / cells * 1e9:.1f}" if facts["name"] in EXPONENTIAL else "",
                "" if facts["name"] in EXPONENTIAL else f"{draw / facts['tokens'] * 1e6:.0f}",
                seconds(laps["card"]["cpu"]),
                gigabytes(facts["peak, rewriting"]),
                gigabytes(facts["peak, with card"]),
                verdict(max(facts["peak, rewriting"], facts["peak, with card"]), MEMORY_TARGET),
            ]
        )
    report.facts = {"mechanisms": measured}
    report.table(
        f"{LARGE:,} words, 300 dimensions; target: peak memory < {gigabytes(MEMORY_TARGET)}",
        ("mechanism", "tokens", "distinct", "preparation\nCPU s", "rewriting\nCPU s", "draw, ns\nper cell",
         "draw, µs\nper token", "card\nCPU s", "peak,\nrewriting", "peak,\nwith card", "memory"),
        rows,
    )  # fmt: skip
    report.notes.append("cell = one distinct word in use times one vocabulary word")
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"mechanism": measure_mechanism})
    main()
