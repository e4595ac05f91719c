"""Sketches: the static encoder beside MiniLM by torch, and a file of short rows from the first byte to the sketch.

Encoding: texts per CPU second on sentences of the general pool, one thread, both in this run (`--texts` for MiniLM).
Sketch: `--rows` rows (two pool sentences joined, 7 labels) in a csv file, by `tacit.jobs.sketch`, one process: rows per
CPU second, wall seconds, peak memory, size of the sketch; the same with a user column (ten rows each).

    python benchmarks/sketch.py                      a million rows
    python benchmarks/sketch.py --rows 100000
"""

from __future__ import annotations

import csv
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Report, answer_part, arguments_parser, gigabytes, peak_memory, run_part, say, seconds

LABELS = tuple(f"label {place}" for place in range(7))
ROWS, TEXTS = 1_000_000, 2_000
TARGET_RATIO, TARGET_SECONDS, TARGET_MEMORY = 20.0, 600.0, 1e9


def encoding(name: str, texts: int) -> dict[str, Any]:
    """Texts per CPU second of one encoder."""
    from tacit.encoders import load_encoder
    from tacit.matching.pool import load_pool

    sentences = load_pool().sentences
    chosen = list(sentences[:: max(1, len(sentences) // texts)][:texts])
    encoder = load_encoder(name)
    encoder.encode(chosen[:50])
    begun = time.process_time()
    encoder.encode(chosen)
    return {"texts": len(chosen), "per_second": len(chosen) / (time.process_time() - begun)}


def sketching(place: str, by_user: bool) -> dict[str, Any]:
    """What a sketch of a csv file costs."""
    from tacit.jobs.sketch import run
    from tacit.jobs.sketched_rows import SketchConfig

    output = Path(place).with_name("users.tacit" if by_user else "records.tacit")
    config = SketchConfig(
        data=place, output=output, column="text", label_column="label", labels=LABELS, epsilon=1.0,
        user_column="user" if by_user else None,
    )  # fmt: skip
    cpu, wall = time.process_time(), time.perf_counter()
    result = run(config)
    return {
        "rows": result.findings.rows,
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "memory": peak_memory(),
        "bytes": output.stat().st_size,
    }


def write_rows(path: Path, rows: int) -> None:
    from tacit.matching.pool import load_pool

    sentences = load_pool().sentences
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "user"])
        for row in range(rows):
            first, second = sentences[row % len(sentences)], sentences[row * 7919 % len(sentences)]
            writer.writerow([f"{first} {second}", LABELS[row % len(LABELS)], f"u{row // 10}"])


def main() -> None:
    answer_part({"encoding": encoding, "sketching": sketching})
    parser = arguments_parser(__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--texts", type=int, default=TEXTS)
    given = parser.parse_args()
    say("encoders")
    static = run_part(__file__, "encoding", {"name": "static", "texts": 100_000})
    minilm = run_part(__file__, "encoding", {"name": "minilm", "texts": given.texts})
    ratio = static["per_second"] / minilm["per_second"]
    report = Report("sketch", facts={"static": static, "minilm": minilm})
    report.table(
        "Texts per CPU second",
        ["encoder", "texts", "per CPU second", "ratio", "target"],
        [
            ["static", f"{static['texts']:,}", f"{static['per_second']:,.0f}", f"{ratio:.0f}", f"{TARGET_RATIO:.0f}"],
            ["minilm (torch)", f"{minilm['texts']:,}", f"{minilm['per_second']:,.0f}", "1", ""],
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        say(f"writing {given.rows:,} rows")
        write_rows(path, given.rows)
        rows = []
        for by_user in (False, True):
            say("a sketch by user" if by_user else "a sketch by record")
            made = run_part(__file__, "sketching", {"place": str(path), "by_user": by_user})
            report.facts["by user" if by_user else "by record"] = made
            rows.append([
                "by user" if by_user else "by record", f"{made['rows'] / made['cpu']:,.0f}", seconds(made["cpu"]),
                seconds(made["wall"]), f"{TARGET_SECONDS:.0f} s", gigabytes(made["memory"]), gigabytes(TARGET_MEMORY),
                f"{made['bytes'] / 1e6:.2f} MB",
            ])  # fmt: skip
    report.table(
        f"A sketch of {given.rows:,} short rows, one process",
        ["unit", "rows per CPU second", "CPU", "wall", "target", "peak memory", "target", "sketch"],
        rows,
    )
    report.show(given.json)


if __name__ == "__main__":
    main()
