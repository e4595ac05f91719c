"""One billion documents: what they cost, how long they take, and what breaks first; from rates measured in this run.

Measured in a short run, on one core each:
    word level       tokens per second of `santext` (one block after the other, as a worker does it)
    document level   documents per second of the private codebook (mostly the sentence encoder), by MiniLM and by the
                     static encoder
    codebook         public texts encoded per second, when a codebook is built
    engine           seconds of the cluster engine beside: cutting, pickling, staging, records (without Ray itself)
    ledger           seconds and bytes per document in an SQLite ledger
    Ray              what it adds to the CPU seconds of a further row of a long job, against the local engine (the start
                     of Ray, which a long job pays once, is not in it; see ray_engine.py)

Computed: core-hours, storage and cost at --price per core-hour; a part is `tacit.engines.cluster.parts.part_characters`
of the whole, as in the engine. --ray-share puts another number in the place of what was measured of Ray.

Simulated: the same parts on 64, 256 and 1,024 cores, with durations that scatter (log-normal, sigma 0.3), one part in
200 on a machine that is five times slower, and machines of 16 cores that fail once in --hours-between-failures; a
failure costs the parts in work, and 90 s until the machine is back. Part by part, with a fixed seed.

    python benchmarks/scale.py                       about five minutes
    python benchmarks/scale.py --documents 1000000000 --characters 500 --price 0.03 --json numbers.json
"""

from __future__ import annotations

import bisect
import heapq
import json
import math
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import MADE_UP, SEED, SMALL, some_sentences, vectors_path
from measure import Facts, Report, answer_part, arguments_parser, run_part, say, seconds
from ray_engine import overhead

CORES_PER_MACHINE = 16
RESTART_SECONDS = 90.0
STRAGGLERS, SLOWNESS, SCATTER = 1 / 200, 5.0, 0.3
RAY_SHARE = "Ray, share of a long job"


# Measured -----------------------------------------------------------------------------------------------------------


def rates(vectors: str, tokens: int, documents: int, characters: int) -> Facts:
    """Everything that is measured, in CPU seconds of one thread."""
    texts = joined(some_sentences(tokens), characters)
    word, units = word_rate(vectors, texts)
    size = sum(map(len, texts))
    few = texts[:documents]
    engine, record = engine_cost(texts)
    ledger = ledger_cost(few)
    return {
        "tokens per second": word,
        "characters per token": size / units,
        "documents per second": document_rate(few, "minilm"),
        "documents per second, static": document_rate(texts, "static"),
        "codebook texts per second": codebook_rate(few),
        "engine seconds per million characters": engine / size * 1e6,
        "driver bytes per part": record,
        **ledger,
    }


def joined(sentences: list[str], characters: int) -> list[str]:
    """Documents of about so many characters."""
    documents, current = [], ""
    for sentence in sentences:
        current = f"{current} {sentence}".strip()
        if len(current) >= characters:
            documents.append(current)
            current = ""
    return documents


def cpu_seconds(work: Any) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def word_rate(vectors: str, texts: list[str]) -> tuple[float, int]:
    from tacit.catalog import build
    from tacit.noise.source import StreamKey

    mechanism = build("santext", {"vectors": vectors, "epsilon": 3.0})
    mechanism.prepare()
    key = StreamKey.from_os()
    mechanism.rewrite_texts(texts[:200], key.stream(0, b"warm"))
    spent, found = cpu_seconds(lambda: mechanism.rewrite_texts(texts, key.stream(1, b"measured")))
    units = sum(found.units)
    return units / spent, units


def document_rate(texts: list[str], codebook: str) -> float:
    from tacit.catalog import build
    from tacit.noise.source import StreamKey

    mechanism = build("codebook", {"epsilon": 3.0, "codebook": codebook})
    mechanism.prepare()
    key = StreamKey.from_os()
    mechanism.rewrite_texts(texts[:20], key.stream(0, b"warm"))
    spent, _ = cpu_seconds(lambda: mechanism.rewrite_texts(texts, key.stream(1, b"measured")))
    return len(texts) / spent


def codebook_rate(texts: list[str]) -> float:
    from tacit.documents.encoder import SentenceEncoder

    encoder = SentenceEncoder()
    encoder.encode(texts[:20])
    spent, _ = cpu_seconds(lambda: encoder.encode(texts))
    return len(texts) / spent


def engine_cost(texts: list[str]) -> tuple[float, float]:
    """Seconds that the engine takes beside the mechanism, and bytes of memory that the command keeps for a part."""
    import pickle
    import sys

    from tacit.engines.blocks import fingerprint
    from tacit.engines.cluster.dataset import find_data_set
    from tacit.engines.cluster.parts import WorkerPlan, commit_part, cut_parts
    from tacit.engines.cluster.staging import JobFile, Staging
    from tacit.noise.source import StreamKey
    from tacit.text.files import FileFormat, choose_columns, encoder_for

    mechanism = unchanged()
    with tempfile.TemporaryDirectory(prefix="tacit-scale-") as folder:
        source = Path(folder) / "in.txt"
        source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        data = find_data_set(str(source))
        selection = choose_columns(("text",), (), ())
        staging = Staging(str(Path(folder) / "out.partial"))
        staging.create(JobFile("00" * 32, True, False, 0, [], {}))
        encoder = encoder_for(FileFormat("txt"), ("text",))
        plan = WorkerPlan(
            type(mechanism), {}, selection, data.format, encoder, None, None, "", fingerprint(mechanism, ("text",)),
            type(mechanism).block_characters, staging.folder.url,
        )  # fmt: skip

        def all_parts() -> list[Any]:
            key = StreamKey.from_os()
            parts = (pickle.loads(pickle.dumps(part)) for part in cut_parts(plan, 0, data.files[0], None))
            return [commit_part(plan, mechanism, key, staging, part) for part in parts]

        spent, done = cpu_seconds(all_parts)
        staging.close()
        size = sum(sys.getsizeof(value) for value in (done[0], *vars(done[0].finished).values())) + 200
    return spent, float(size)


def unchanged() -> Any:
    """No mechanism at all: what is left is the cost of the engine."""
    from dataclasses import dataclass

    from tacit.mechanism import Mechanism, Rewritten

    @dataclass(kw_only=True, eq=False)
    class Unchanged(Mechanism):
        epsilon: float = 1.0

        def prepare(self) -> None:
            return

        def guarantee(self, *, secure: bool | None = None) -> Any:
            raise NotImplementedError("nothing is promised")

        def rewrite_texts(self, texts: Any, source: Any) -> Rewritten:
            return Rewritten(list(texts), [1] * len(texts))

    Unchanged.name = "unchanged"  # set afterwards, so that no catalog lists it
    return Unchanged()


def ledger_cost(texts: list[str]) -> Facts:
    from tacit.account.ledger import Subject, open_ledger
    from tacit.guarantee import Adjacency, Guarantee, Notion, Unit

    promise = Guarantee(
        notion=Notion.PURE, epsilon=1.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="measured"
    )
    distinct = [f"{number} {text}" for number, text in enumerate(texts * 4)]
    with tempfile.TemporaryDirectory(prefix="tacit-scale-") as folder:
        place = Path(folder) / "ledger.db"
        with open_ledger(place, key="01" * 32) as ledger:
            subjects = [Subject("document", text) for text in distinct]
            spent, _ = cpu_seconds(
                lambda: ledger.reserve(promise, dataset="measured", subjects=subjects, token="a").commit()
            )
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {"ledger seconds per document": spent / len(distinct), "ledger bytes per document": size / len(distinct)}


# Computed -----------------------------------------------------------------------------------------------------------


def plan(documents: int, characters: int, measured: Facts, share: float) -> list[Facts]:
    """One line per kind of job: parts, core-hours, storage."""
    from tacit.catalog import find
    from tacit.engines.cluster.parts import part_characters

    total = documents * characters
    tokens = total / measured["characters per token"]
    jobs = {
        "santext": tokens / measured["tokens per second"],
        "codebook": documents / measured["documents per second"],
        "codebook static": documents / measured["documents per second, static"],
    }
    found = []
    for name, work in jobs.items():
        block = find(name.split()[0]).block_characters
        parts = math.ceil(total / part_characters(total, block))
        core_seconds = work * (1 + share) + total / 1e6 * measured["engine seconds per million characters"]
        found.append(
            {
                "job": f"rewrite, {name}",
                "blocks": math.ceil(total / block),
                "parts": parts,
                "seconds per part": core_seconds / parts,
                "core-hours": core_seconds / 3600,
                "input TB": total / 1e12,
                "staging TB": 2 * total / 1e12,
            }
        )
    return found


# Simulated ----------------------------------------------------------------------------------------------------------


def simulated(parts: int, part_seconds: float, cores: int, hours_between_failures: float, seed: int = SEED) -> Facts:
    """Hours until the last part is finished, part by part: whoever is free takes the next part."""
    chance = random.Random(seed)
    failures = [Failures(hours_between_failures * 3600, chance) for _ in range(math.ceil(cores / CORES_PER_MACHINE))]
    free = [(0.0, core) for core in range(cores)]
    left, last, lost = parts, 0.0, 0.0
    while left:
        now, core = heapq.heappop(free)
        duration = part_seconds * chance.lognormvariate(-(SCATTER**2) / 2, SCATTER)
        if chance.random() < STRAGGLERS:
            duration *= SLOWNESS
        end, failure = now + duration, failures[core // CORES_PER_MACHINE].after(now)
        if end > failure:  # the part is lost, and taken again by whoever is free first
            lost += failure - now
            heapq.heappush(free, (failure + RESTART_SECONDS, core))
            continue
        left, last = left - 1, max(last, end)
        heapq.heappush(free, (end, core))
    count = sum(machine.until(last) for machine in failures)
    ideal = parts * part_seconds / cores
    return {"hours": last / 3600, "ideal hours": ideal / 3600, "failures": count, "lost core-hours": lost / 3600}


class Failures:
    """The moments at which one machine fails: a Poisson process, made as far as it is asked for."""

    def __init__(self, mean: float, chance: random.Random) -> None:
        self._mean, self._chance = mean, chance
        self._times = [chance.expovariate(1 / mean)]

    def after(self, now: float) -> float:
        while self._times[-1] <= now:
            self._times.append(self._times[-1] + RESTART_SECONDS + self._chance.expovariate(1 / self._mean))
        return self._times[bisect.bisect_right(self._times, now)]

    def until(self, end: float) -> int:
        return bisect.bisect_right(self._times, end)


# The program --------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000_000)
    parser.add_argument("--characters", type=int, default=500, help="of a document, on average")
    parser.add_argument("--price", type=float, default=0.03, help="of a core-hour")
    parser.add_argument(
        "--ray-share", type=float, help="what Ray adds to the work, as a share of it; measured by default"
    )
    parser.add_argument("--ray-rows", type=int, default=400_000, help="short rows to measure that with")
    parser.add_argument("--hours-between-failures", type=float, default=200.0, help="of one machine of 16 cores")
    parser.add_argument("--tokens", type=int, default=300_000, help="measured at the word level")
    parser.add_argument("--measured-documents", type=int, default=500, help="measured at the document level")
    parser.add_argument("--rates", type=Path, metavar="PATH", help="rates from the --json of an earlier run")
    parser.add_argument("--codebook-texts", type=int, default=10_000_000, help="public texts of a codebook")
    given = parser.parse_args()
    if given.rates is not None:
        measured = dict(json.loads(given.rates.read_text(encoding="utf-8"))["measured"])
    else:
        say("measuring rates")
        asked = {"tokens": given.tokens, "documents": given.measured_documents, "characters": given.characters}
        measured = run_part(__file__, "rates", {"vectors": str(vectors_path(SMALL)), **asked})
    if given.ray_share is not None:
        measured[RAY_SHARE] = given.ray_share
    elif RAY_SHARE not in measured:
        measured[RAY_SHARE] = overhead(given.ray_rows, runs=2).share("cpu")
    share = max(0.0, measured[RAY_SHARE])
    report = Report("scale", notes=[MADE_UP])
    report.table("Measured, per core", ("what", "rate"), [[name, f"{value:,.6g}"] for name, value in measured.items()])
    lines = plan(given.documents, given.characters, measured, share)
    report.table(
        f"{given.documents:,} documents of {given.characters} characters, {given.price} per core-hour",
        ("job", "parts", "s per part", "core-hours", "cost", "input TB", "staging TB"),
        [
            [one["job"], f"{one['parts']:,}", seconds(one["seconds per part"]), f"{one['core-hours']:,.0f}",
             f"{one['core-hours'] * given.price:,.0f}", f"{one['input TB']:.2f}", f"{one['staging TB']:.2f}"]
            for one in lines
        ],
    )  # fmt: skip
    runs = [
        {"job": one["job"], "cores": cores,
         **simulated(one["parts"], one["seconds per part"], cores, given.hours_between_failures)}
        for one in lines
        for cores in (64, 256, 1024)
    ]  # fmt: skip
    report.table(
        f"Simulated, machines of {CORES_PER_MACHINE} cores failing every {given.hours_between_failures:g} h each",
        ("job", "cores", "hours", "without failures\nor stragglers", "failures", "core-hours lost"),
        [
            [run["job"], f"{run['cores']:,}", f"{run['hours']:.2f}", f"{run['ideal hours']:.2f}",
             f"{run['failures']:,}", f"{run['lost core-hours']:.1f}"]
            for run in runs
        ],
    )  # fmt: skip
    texts = given.codebook_texts
    hours = texts / measured["codebook texts per second"] * (1 + share) / 3600
    report.notes.append(
        f"a codebook from {texts:,} public texts: {hours:,.0f} core-hours, {hours * given.price:,.0f} at this price; "
        f"its vectors lie in the memory of one machine, {texts * 384 * 4 / 1e9:,.1f} GB"
    )
    record, entry = measured["driver bytes per part"], measured["ledger bytes per document"]
    report.table(
        "What would break first",
        ("job", "parts", "memory for\ntheir records, MB", "if every block\nwere a part", "memory, MB", "ledger\nrows",
         "ledger\nGB", "ledger\ncore-hours"),
        [
            [one["job"], f"{one['parts']:,}", f"{one['parts'] * record / 1e6:,.0f}", f"{one['blocks']:,}",
             f"{one['blocks'] * record / 1e6:,.0f}", f"{given.documents:,}", f"{given.documents * entry / 1e9:,.0f}",
             f"{given.documents * measured['ledger seconds per document'] / 3600:,.1f}"]
            for one in lines
        ],
    )  # fmt: skip
    report.facts = {"measured": measured, "plan": lines, "simulated": runs}
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"rates": rates})
    main()
