"""The word mechanisms on SST-2 train (67,349 sentences) with 14,700 words of 300 dimensions, against the bare
arithmetic that none of them can avoid, in the same run.

Exponential mechanisms (SanText, SanText+, CusText, TEM): the bare pass is the float64 matrix product of the rows in
use (the distinct words of the text) with the vocabulary, in the same blocks, and one exp over the result. CusText only
looks at the words of one output set, so for it the bare pass is generous. The float32 bare pass is shown for
information.

Noise mechanisms (multivariate Laplace, Mahalanobis, Vickrey, truncated Gumbel): the bare pass is the float32 matrix
product of the exact search, tokens x words x dimensions, in the same blocks. Truncated Gumbel searches once per
distinct word, so for it the bare pass is generous (and always extrapolated, while the mechanism gets all tokens).

Mechanism and bare pass run by turns in the same process, so that a change in the load of the machine hits both. Text
goes through in the blocks that `tacit rewrite` would cut. "rewriting" is everything done to the text (tokenizing and
lookup, private draw, joining); public preparation is apart: loading vectors, making search tables, and the numbers on
the card that are computed once per vector file and then kept.

    python benchmarks/word_mechanisms.py           60,000 tokens where the cost is per token, else all of them
    python benchmarks/word_mechanisms.py --full    all tokens for all mechanisms (some minutes)
    python benchmarks/word_mechanisms.py --only santext,laplace --json numbers.json

Numbers with a ~ are extrapolated from the sample to all tokens.
"""

from __future__ import annotations

from typing import Any

from corpus import FROM_CORPUS, MADE_UP, SMALL, some_sentences, vectors_path
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

EXPONENTIAL = ("santext", "santext+", "custext", "tem")
NOISE = ("laplace", "mahalanobis", "vickrey", "truncated-gumbel")
OPTIONS: dict[str, dict[str, Any]] = {
    "santext": {"epsilon": 3.0},
    "santext+": {"epsilon": 3.0, "sensitive_share": 0.9},
    "custext": {"epsilon": 3.0},
    "tem": {"epsilon": 3.0},
    "laplace": {"epsilon": 20.0},
    "mahalanobis": {"epsilon": 20.0},
    "vickrey": {"epsilon": 20.0},
    # Far inside its domain with these vectors.
    "truncated-gumbel": {"epsilon": 40.0},
}
TARGETS: dict[str, dict[str, Any]] = {
    "exponential": {"ratio": 2.0, "cpu": 10.0, "memory": 0.5e9},
    "noise": {"ratio": 1.3, "cpu": 150.0, "memory": None},
}
LAPS = ("loading vectors", "preparation", "tokenizing and lookup", "private draw", "joining")


def family(name: str) -> str:
    return "exponential" if name in EXPONENTIAL else "noise"


# Measured in their own process --------------------------------------------------------------------------------------


def count_tokens() -> Facts:
    from tacit.text.tokens import split

    return {"tokens": sum(len(split(sentence)) for sentence in some_sentences(None))}


def measure_mechanism(name: str, vectors: str, tokens: int | None, repeat: int, bare_tokens: int | None) -> Facts:
    import numpy as np

    from tacit.catalog import build
    from tacit.noise.source import Source

    texts = some_sentences(tokens)
    before_loading = peak_memory()
    watch = Stopwatch()
    mechanism: Any = build(name, {"vectors": vectors, **OPTIONS[name]})
    with watch.lap("loading vectors"):
        assert mechanism.table is not None
    with watch.lap("preparation"):
        mechanism.prepare()

    ids_seen: list[Any] = []
    draw = mechanism.draw

    def watched_draw(ids: Any, source: Source) -> Any:
        ids_seen.append(ids)
        with watch.lap("private draw"):
            return draw(ids, source)

    mechanism.draw = watched_draw
    mechanism._decode = watch.around("joining", mechanism._decode)

    blocks = cut(texts, mechanism.block_characters)
    bare: Any = None
    peak, done, compared = 0, 0, 0
    for round_ in range(repeat):
        ids_seen.clear()
        mechanism.__dict__.pop("_known_chunks", None)  # each turn begins like the first
        for number, block in enumerate(blocks):
            source = Source.from_os()
            with watch.lap("rewriting"):
                rewritten = mechanism.rewrite_texts(block, source)
            done += sum(rewritten.units) if round_ == 0 else 0
            peak = peak_memory() if bare is None else peak
            if bare is None:
                bare = bare_pass(name, mechanism, watch)
            if bare_tokens is None or compared < bare_tokens:
                ids = ids_seen[-1] if bare_tokens is None else ids_seen[-1][: bare_tokens - compared]
                bare(ids)
                compared += len(ids) if round_ == 0 else 0
            if number % 5 == 4:
                say(f"    {name}: {number + 1} of {len(blocks)} blocks")
    with watch.lap("numbers for the card"):
        mechanism.guarantee()
    laps = watch.as_facts()
    for lap in ("rewriting", "private draw", "joining", "bare", "bare float32"):
        for figure in laps.get(lap, {}):
            laps[lap][figure] *= done / compared / repeat if lap == "bare" else 1 / repeat
    laps["tokenizing and lookup"] = {
        figure: laps["rewriting"][figure] - laps["private draw"][figure] - laps["joining"][figure]
        for figure in ("cpu", "wall")
    }
    return {
        "name": name,
        "family": family(name),
        "tokens": done,
        "tokens of the bare pass": compared,
        "distinct words": len(np.unique(np.concatenate(ids_seen))),
        "vocabulary": len(mechanism.table),
        "blocks": len(blocks),
        "peak memory": peak,
        "of it text and libraries": before_loading,
        "peak with card and bare pass": peak_memory(),
        "laps": laps,
    }


def cut(texts: list[str], characters: int) -> list[list[str]]:
    """Blocks of about so many characters, as `tacit rewrite` cuts them."""
    blocks: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if size >= characters:
            blocks.append([])
            size = 0
        blocks[-1].append(text)
        size += len(text)
    return blocks


def bare_pass(name: str, mechanism: Any, watch: Stopwatch) -> Any:
    """A function that does the bare arithmetic for these ids, with everything else prepared beforehand."""
    import numpy as np

    vectors = np.asarray(mechanism.table.vectors)
    if family(name) == "noise":
        from tacit.vectors.search import Neighbors

        right = np.ascontiguousarray(vectors.T)
        _, height = Neighbors(vectors)._product_tiles()
        queries = vectors[np.arange(height) % len(vectors)]
        scores = np.empty((height, len(vectors)), dtype=np.float32)

        def product(ids: Any) -> None:
            with watch.lap("bare"):
                for start in range(0, len(ids), height):
                    rows = min(height, len(ids) - start)
                    np.matmul(queries[:rows], right, out=scores[:rows])

        return product

    from tacit.words.base import BLOCK_CELLS

    outputs = mechanism.outputs if hasattr(mechanism, "outputs") else np.arange(len(vectors))
    height = max(1, BLOCK_CELLS // len(outputs))
    prepared = []
    for kind, lap in ((np.float64, "bare"), (np.float32, "bare float32")):
        # Scaled so that exp stays far from overflow.
        left = (vectors * -0.05).astype(kind)
        right = np.ascontiguousarray(vectors[outputs].T, dtype=kind)
        prepared.append((lap, left, right, np.empty((height, len(outputs)), dtype=kind)))

    def product_and_exp(ids: Any) -> None:
        types = np.unique(ids % len(vectors))
        for lap, left, right, buffer in prepared:
            rows = left[types]
            with watch.lap(lap):
                for start in range(0, len(rows), height):
                    block = buffer[: len(rows[start : start + height])]
                    np.matmul(rows[start : start + height], right, out=block)
                    np.exp(block, out=block)

    return product_and_exp


# The program --------------------------------------------------------------------------------------------------------


def summary(facts: Facts, all_tokens: int) -> Facts:
    """Ratios, and CPU seconds for all tokens."""
    laps = facts["laps"]
    scale = all_tokens / facts["tokens"]
    kind = facts["family"]
    once = laps["loading vectors"]["cpu"] + laps["preparation"]["cpu"]
    return {
        "ratio": laps["rewriting"]["cpu"] / laps["bare"]["cpu"],
        "ratio with loading": (once + laps["rewriting"]["cpu"] * scale) / (laps["bare"]["cpu"] * scale),
        "ratio of the draw": laps["private draw"]["cpu"] / laps["bare"]["cpu"],
        "cpu for all tokens": once + laps["rewriting"]["cpu"] * scale,
        "wall for all tokens": laps["loading vectors"]["wall"]
        + laps["preparation"]["wall"]
        + laps["rewriting"]["wall"] * scale,
        "extrapolated": scale > 1.001,
        "targets": TARGETS[kind],
    }


def show(report: Report, measured: list[Facts], all_tokens: int) -> None:
    for kind, title in (
        ("exponential", "Exponential mechanisms; bare pass: float64 product over the rows in use, and exp"),
        ("noise", "Noise mechanisms; bare pass: float32 product of the exact search"),
    ):
        rows, laps, targets = [], [], TARGETS[kind]
        for facts in measured:
            if facts["family"] != kind:
                continue
            short, took = facts["summary"], facts["laps"]
            guess = short["extrapolated"]
            bare = took["bare"]["cpu"] * all_tokens / facts["tokens"]
            row = [
                facts["name"],
                f"{facts['tokens']:,}",
                f"{facts['distinct words']:,}",
                seconds(bare, extrapolated=facts["tokens of the bare pass"] < all_tokens),
                seconds(short["cpu for all tokens"], extrapolated=guess),
                seconds(short["wall for all tokens"], extrapolated=guess),
                f"{short['ratio of the draw']:.2f}",
                f"{short['ratio']:.2f}",
                f"{short['ratio with loading']:.2f}",
                gigabytes(facts["peak memory"]),
            ]
            checks = [
                verdict(short["ratio with loading"], targets["ratio"]),
                verdict(short["cpu for all tokens"], targets["cpu"]),
            ]
            if targets["memory"]:
                checks.append(verdict(facts["peak memory"], targets["memory"]))
            rows.append([*row, " ".join(checks)])
            line = [facts["name"], *(seconds(took[lap]["cpu"]) for lap in LAPS)]
            line.append(seconds(took["numbers for the card"]["cpu"]))
            if "bare float32" in took:
                line.append(seconds(took["bare float32"]["cpu"]))
            laps.append(line)
        if not rows:
            continue
        limits = f"ratio <= {targets['ratio']}, < {targets['cpu']:g} CPU s"
        limits += f", < {gigabytes(targets['memory'])}" if targets["memory"] else ""
        report.table(
            f"{title}\nCPU seconds for all {all_tokens:,} tokens; targets: {limits}",
            ("mechanism", "measured\ntokens", "distinct", "bare\nCPU s", "total\nCPU s", "total\nwall s",
             "draw /\nbare", "rewriting /\nbare", "total /\nbare", "peak\nmemory", "targets"),
            rows,
        )  # fmt: skip
        more = ("bare pass\nin float32",) if kind == "exponential" else ()
        report.table(
            "Where the CPU seconds go (measured tokens)",
            ("mechanism", "loading\nvectors", "preparation", "tokenizing\nand lookup", "private\ndraw", "joining",
             "numbers for\nthe card (once)", *more),
            laps,
        )  # fmt: skip


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--tokens", type=int, default=60_000, help="tokens for the noise mechanisms (default 60,000)")
    parser.add_argument("--full", action="store_true", help="all tokens for the noise mechanisms too")
    parser.add_argument("--only", default="", metavar="NAMES", help="these mechanisms, separated by commas")
    parser.add_argument(
        "--threads", type=int, default=1, help="BLAS threads (default 1: CPU time without idle waiting)"
    )
    parser.add_argument("--repeat", type=int, default=3, help="turns of the exponential mechanisms (default 3)")
    given = parser.parse_args()
    names = [name.strip() for name in given.only.split(",") if name.strip()] or [*EXPONENTIAL, *NOISE]
    for name in names:
        if name not in OPTIONS:
            parser.error(f"there is no mechanism '{name}' here: choose from {', '.join(OPTIONS)}")
    report = Report("word_mechanisms", notes=["total = loading, preparation and rewriting; ~ = extrapolated"])
    report.notes += [MADE_UP, FROM_CORPUS, f"{given.threads} BLAS thread(s); each mechanism in its own process"]
    vectors = str(vectors_path(SMALL))
    all_tokens = run_part(__file__, "count", {})["tokens"]
    measured = []
    for name in names:
        exponential = family(name) == "exponential"
        per_word = exponential or name == "truncated-gumbel"
        tokens = None if per_word or given.full else given.tokens
        bare_tokens = given.tokens if name == "truncated-gumbel" else None
        say(f"{name}: {'all' if tokens is None else f'{tokens:,}'} tokens")
        repeat = given.repeat if exponential else 1
        arguments = {"name": name, "vectors": vectors, "tokens": tokens, "repeat": repeat, "bare_tokens": bare_tokens}
        facts = run_part(__file__, "mechanism", arguments, threads=given.threads)
        measured.append({**facts, "summary": summary(facts, all_tokens)})
    report.facts = {"all tokens": all_tokens, "threads": given.threads, "mechanisms": measured}
    show(report, measured, all_tokens)
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"count": count_tokens, "mechanism": measure_mechanism})
    main()
