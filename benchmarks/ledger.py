"""What a ledger costs: the same file rewritten without and with one, and reservations per second.

Rewrite: 100,000 rows (the sentences of SST-2 train again and again, each with a number, so that every text is another)
through the default mechanism of `tacit rewrite`, without a ledger, with one, and with one that has a limit per document
to look up. Each in its own process; CPU seconds of the command, without loading the vectors. Target: 1.3 times.

Reservations: one text each, as a service makes them, reserved and committed; every one of them is on the disk (two
synchronous commits) before the next. CPU seconds count what the ledger works; the wall clock counts the disk.

    python benchmarks/ledger.py                          about 2 minutes
    python benchmarks/ledger.py --rows 20000 --reservations 200 --json numbers.json
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from pathlib import Path

from corpus import SEED, cache_folder, sentences
from measure import Facts, Report, answer_part, arguments_parser, run_part, say, seconds, verdict

RATIO_TARGET = 1.3
EPSILON = 3.0
KEY = "a key for benchmarks only"


def text_file(rows: int) -> Path:
    path = cache_folder() / f"sst2-{rows}-numbered.txt"
    if not path.is_file():
        say(f"writing a file of {rows:,} rows (once)")
        lines = list(sentences())
        random.Random(SEED).shuffle(lines)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text("".join(f"{lines[row % len(lines)]} {row}\n" for row in range(rows)), encoding="utf-8")
        draft.replace(path)
    return path


def rewrite(path: str, ledger: bool, limit: bool) -> Facts:
    """CPU and wall seconds of one job."""
    from tacit.account.ledger import open_ledger
    from tacit.catalog import DEFAULT_MECHANISM, build
    from tacit.engines.charging import Charging
    from tacit.engines.job import RewriteJob
    from tacit.engines.local import rewrite_file

    mechanism = build(DEFAULT_MECHANISM, {"epsilon": EPSILON})
    mechanism.prepare()
    mechanism.guarantee()
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder, open_ledger(f"{folder}/l.db", KEY) as opened:
        if limit:
            opened.set_limit("document", epsilon=1e9)
        charging = Charging(opened, "benchmark") if ledger else None
        job = RewriteJob(mechanism=mechanism, input=path, output=f"{folder}/out.txt", charging=charging)
        cpu, wall = time.process_time(), time.perf_counter()
        facts = rewrite_file(job).facts
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {"cpu": cpu, "wall": wall, "rows": facts.rows, "releases": len(opened.releases())}


def reserve(count: int, limit: bool) -> Facts:
    """CPU and wall seconds of single reservations, as a service makes them."""
    from tacit.account.ledger import Subject, open_ledger
    from tacit.guarantee import Adjacency, Guarantee, Notion, Unit

    promised = Guarantee(
        notion=Notion.PURE, epsilon=1e-6, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="benchmark"
    )
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder, open_ledger(f"{folder}/l.db", KEY) as opened:
        if limit:
            opened.set_limit("document", epsilon=1e9)
            opened.set_limit("key", epsilon=1e9)
        cpu, wall = time.process_time(), time.perf_counter()
        for number in range(count):
            subjects = [Subject("document", f"text {number}"), Subject("key", "client")]
            opened.reserve(promised, dataset="service", subjects=subjects, token=str(number)).commit()
        return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "count": count}


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the file")
    parser.add_argument("--reservations", type=int, default=2_000, help="single reservations")
    given = parser.parse_args()
    path = str(text_file(given.rows))
    report = Report("ledger")
    kinds = {"no ledger": (False, False), "ledger": (True, False), "ledger, limit per document": (True, True)}
    runs: dict[str, Facts] = {}
    for name, (ledger, limit) in kinds.items():
        say(f"{given.rows:,} rows, {name}")
        runs[name] = run_part(__file__, "rewrite", {"path": path, "ledger": ledger, "limit": limit})
    singles: dict[str, Facts] = {}
    for name, limit in (("no limit", False), ("limits per document and key", True)):
        say(f"{given.reservations:,} reservations, {name}")
        singles[name] = run_part(__file__, "reserve", {"count": given.reservations, "limit": limit})
    report.facts = {"rewrite": runs, "reservations": singles}
    base = runs["no ledger"]["cpu"]
    report.table(
        f"tacit rewrite of {given.rows:,} short rows; target: {RATIO_TARGET} x the CPU time",
        ("", "reservations", "CPU s", "ratio", "", "wall s"),
        [
            [
                name,
                str(facts["releases"]),
                seconds(facts["cpu"]),
                f"{facts['cpu'] / base:.2f}",
                verdict(facts["cpu"] / base, RATIO_TARGET),
                seconds(facts["wall"]),
            ]
            for name, facts in runs.items()
        ],
    )
    report.table(
        "Single reservations (reserve and commit)",
        ("", "per CPU second", "per wall second"),
        [
            [name, f"{facts['count'] / facts['cpu']:,.0f}", f"{facts['count'] / facts['wall']:,.0f}"]
            for name, facts in singles.items()
        ],
    )
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"rewrite": rewrite, "reserve": reserve})
    main()
