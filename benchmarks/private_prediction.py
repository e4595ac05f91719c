"""Text by private prediction: is it as good to learn from as real rows, and what does the privacy cost in speed?

    python benchmarks/private_prediction.py CELLS                    # about 40 minutes of one core
    python benchmarks/private_prediction.py CELLS --rows 210 --length 16
    python benchmarks/private_prediction.py CELLS --speed            # the second table alone

Snips, 7 intents with about 1,870 rows each: `tacit synthesize --by prompting` writes rows at epsilon 4 with SmolLM2,
and a classifier (logistic regression on word weights) learns the intents from them. It is tested on the real test rows.
In the same run: the same classifier on as many real rows, on rows of the same model and prompt without any private
record (epsilon 0), and the floor of guessing. The prompt, bounds and temperature were chosen on CLINC150, by the
likelihood of texts that were held out.

The second table is about speed: predictions per CPU second while texts are drawn, beside the bare forward pass of the
model on the same number of records with a cache of the same length, and on a reading without empty rows.

The rows are written to the folder CELLS; a stopped program goes on where it was. Real noise: numbers differ from run to
run.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpus import data_folder
from measure import Report, say
from tacit.documents.language_models.reading import FramedReader
from tacit.evaluation.downstream import Labeled, evaluate_downstream
from tacit.evaluation.learners import make_learner
from tacit.jobs.prompted_rows import load_reader
from tacit.jobs.prompted_writing import planned, reader_of, rows_in_memory
from tacit.jobs.synthesize_prompting import PromptedTexts, PromptingConfig, run
from tacit.noise.source import StreamKey, public_generator
from tacit.training.prompting.batches import PrivateRecord, in_batches, seated
from tacit.training.prompting.generation import MOST_BATCHES, Writing, next_wave, write_wave
from tacit.training.prompting.law import AveragedLaw


def snips(part: str) -> list[dict[str, str]]:
    with (data_folder() / "snips" / f"{part}.tsv").open(encoding="utf-8") as file:
        return [
            {"intent": row["intent"], "text": row["tokens"]}
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def settings(given: Any, rows: list[dict[str, str]]) -> dict[str, Any]:
    labels = tuple(sorted({row["intent"] for row in rows}))
    return {
        "label_column": "intent", "labels": labels, "epsilon": given.epsilon, "rows": given.rows,
        "length": given.length, "input_tokens": 16, "physical": 32, "bounding": given.bounding,
    }  # fmt: skip


def private_rows(given: Any, rows: list[dict[str, str]]) -> PromptedTexts | None:
    """The rows by prompting, written once."""
    output = given.cells / f"private-{given.rows}-{given.epsilon:g}-{given.length}-{given.bounding}.csv"
    if output.exists():
        return None
    shown = [0.0]

    def progress(work: str, done: int, total: int) -> None:
        if time.monotonic() - shown[0] > 30:
            shown[0] = time.monotonic()
            say(f"  {work}: {done:,} of {total:,} ({time.process_time():.0f} CPU s)")

    config = PromptingConfig(data=rows, output=output, resume=True, **settings(given, rows))
    made = run(config, progress)
    assert isinstance(made, PromptedTexts)
    print(made.card.to_markdown())
    return made


def without_records(given: Any, rows: list[dict[str, str]]) -> Path:
    """As many rows of the same model and prompt that has read no record."""
    output: Path = given.cells / f"public-{given.rows}-{given.length}.csv"
    if output.exists():
        return output
    config = PromptingConfig(data=rows, **settings(given, rows))
    model = load_reader("smollm2")
    stops = np.array(["\n" in word for word in model.texts_of_tokens()]) | (model.support == model.end)
    law = AveragedLaw(config.bound, config.temperature, 1, "difference")
    writing = Writing(law, model.support, stops, given.length * 2, given.length, 2, config.candidates)
    table = []
    for label in config.labels:
        wanted, texts, turn = -(-given.rows // len(config.labels)), [], 0
        while len(set(texts)) < wanted:
            keys = [StreamKey.from_os().stream(turn, bytes([n])) for n in range(MOST_BATCHES)]
            drawn = write_wave([[] for _ in keys], keys, reader_of(config, model, label), writing)
            texts += [model.text(ids).split("\n")[0].strip() for batch in drawn for ids in batch]
            texts = [text for text in texts if len(text.split()) >= 2]
            turn += 1
        table += [(text, label) for text in list(dict.fromkeys(texts))[:wanted]]
    with output.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "intent"), *table])
    return output


def labeled(path: Path) -> Labeled:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Labeled([row["text"] for row in rows], [row["intent"] for row in rows])


def scores(given: Any, rows: list[dict[str, str]], releases: dict[str, Labeled]) -> dict[str, Any]:
    tested = snips("test")
    shuffled = [rows[i] for i in public_generator(0).permutation(len(rows))[: given.rows]]
    releases = {
        **releases,
        "as many real rows": Labeled([r["text"] for r in shuffled], [r["intent"] for r in shuffled]),
    }
    result = evaluate_downstream(
        "classification",
        make_learner("tfidf", "classification"),
        Labeled([row["text"] for row in rows], [row["intent"] for row in rows]),
        releases,
        Labeled([row["text"] for row in tested], [row["intent"] for row in tested]),
        seeds=(1,),
    )
    arms = {"all real rows": result.ceiling, **{arm.name: arm for arm in result.arms}}
    return {
        "floor": result.floor.value,
        **{name: [arm.value, arm.over_items.low, arm.over_items.high] for name, arm in arms.items()},
    }


class TimedReader(FramedReader):
    """A reader that notes when all prompts were read, and how many readings there are."""

    def __init__(self, reader: FramedReader) -> None:
        super().__init__(reader.model, reader.frame, reader.public, reader.rows, reader.input_tokens, reader.length)
        self.readings, self.begun = 0, 0.0

    def read(self, texts: Any) -> Any:
        self.readings += 1
        return super().read(texts)

    def read_public(self, copies: int) -> Any:
        public = super().read_public(copies)
        self.begun = time.process_time()
        return public


def speed(given: Any, rows: list[dict[str, str]]) -> dict[str, float]:
    """Predictions per CPU second: of a wave of texts as a run writes it, prompts not counted, and of the bare model.

    The bare model continues the same prompts with a cache that grows by the same steps, and does nothing else. It does
    so with as many rows as a reading of the wave holds records on average, and with all rows of a reading filled, once
    after every token of the wave: what else the machine does slows down both.
    """
    config = PromptingConfig(data=rows, **settings(given, rows))
    model = load_reader("smollm2")
    label = config.labels[0]
    records = [PrivateRecord(row["text"], label) for row in rows if row["intent"] == label]
    counts = Counter(row["intent"] for row in rows)
    plan = next(p for p in planned(config, dict(counts), config.candidates, 1e-6) if p.label == label)
    reader = TimedReader(reader_of(config, model, label))
    stops = np.array(["\n" in word for word in model.texts_of_tokens()]) | (model.support == model.end)
    wave = next_wave(0, plan.batches, plan.law.batch, most_rows=rows_in_memory(reader, plan.tokens), usual=plan.batches)
    key = StreamKey.from_os()
    batches = [seated(batch, key.key) for batch in in_batches(records, plan.batches, key.key)][: len(wave)]
    keys = [key.stream(0, bytes([n])) for n in wave]
    held = sum(map(len, batches))
    bare: dict[int, Any] = {}
    turns: dict[int, list[float]] = {}

    def step() -> None:
        """After each token of the wave, one forward pass of the bare model with each number of rows."""
        for count in (round(held / reader.readings), reader.rows):
            if count not in bare:
                texts = [record.text for record in records[:count]]
                bare[count] = model.begin_logits(texts, reader.frame, reader.input_tokens, blank=1)[0]
                turns[count] = []
            begun = time.process_time()
            model.extend_logits(bare[count], np.full(count, 100))
            turns[count].append(time.process_time() - begun)

    bare_seconds = [0.0]

    def timed_step() -> None:
        begun = time.process_time()
        step()
        bare_seconds[0] += time.process_time() - begun

    writing = Writing(plan.law, model.support, stops, plan.tokens, given.length, 2, config.candidates)
    write_wave(batches, keys, reader, writing, timed_step)
    spent = time.process_time() - reader.begun - bare_seconds[0]
    real = held / reader.readings
    forwards = len(turns[reader.rows]) - 1
    speeds = {count: count * len(each) / sum(each) for count, each in turns.items()}

    return {
        "drawn": held * forwards / spent,
        "bare": speeds[round(real)],
        "packed": speeds[reader.rows],
        "real rows": real,
        "rows": reader.rows,
        "batch": plan.law.batch,
        "batches": len(wave),
        "tokens": len(wave) * plan.tokens / spent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path, help="folder for the rows")
    parser.add_argument("--rows", type=int, default=500, help="synthetic rows")
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--length", type=int, default=16, help="tokens of the longest text")
    parser.add_argument("--bounding", choices=("difference", "logits"), default="difference")
    parser.add_argument("--speed", action="store_true", help="the speed alone")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers to this file as well")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.cells.mkdir(parents=True, exist_ok=True)
    rows = snips("train")
    report = Report("private_prediction")
    if not given.speed:
        public = without_records(given, rows)
        private_rows(given, rows)
        place = given.cells / f"private-{given.rows}-{given.epsilon:g}-{given.length}-{given.bounding}.csv"
        releases = {f"prompting, epsilon {given.epsilon:g}": labeled(place), "epsilon 0 (no records)": labeled(public)}
        measured = scores(given, rows, releases)
        real = measured["as many real rows"][0]
        report.table(
            f"Macro-F1 of intents on 700 real test rows, {given.rows} rows to learn from "
            f"(floor {measured['floor']:.3f}; goal: .75 of as many real rows)",
            ("learned from", "rows", "macro-F1", "95 % over test rows", "of real rows"),
            [
                [name, f"{len(releases[name].texts) if name in releases else '':}", f"{value[0]:.3f}",
                 f"{value[1]:.3f} to {value[2]:.3f}", f"{value[0] / real:.2f}"]
                for name, value in measured.items() if name != "floor"
            ],
        )  # fmt: skip
        for name, release in releases.items():
            for label in sorted(set(release.labels)):
                texts = [t for t, each in zip(release.texts, release.labels, strict=True) if each == label][:3]
                report.notes.append(f"{name}: {label}: {' | '.join(texts)}")
        report.facts["downstream"] = measured
    fast = speed(given, rows)
    report.table(
        f"Predictions per CPU second while {fast['batches']:.0f} batches of {fast['batch']:.0f} records are written "
        f"(goal: at least .70 of the bare forward pass); {fast['tokens']:.1f} tokens drawn per CPU second",
        ("", "rows of a forward pass", "that hold a record", "predictions per CPU second", "drawing is this share"),
        [
            ["drawing tokens", f"{fast['rows']:.0f}", f"{fast['real rows']:.1f}", f"{fast['drawn']:.0f}", ""],
            ["bare model, as many records", f"{fast['real rows']:.0f}", f"{fast['real rows']:.0f}",
             f"{fast['bare']:.0f}", f"{fast['drawn'] / fast['bare']:.2f}"],
            ["bare model, all rows filled", f"{fast['rows']:.0f}", f"{fast['rows']:.0f}",
             f"{fast['packed']:.0f}", f"{fast['drawn'] / fast['packed']:.2f}"],
        ],
    )  # fmt: skip
    report.facts["speed"] = fast
    report.show(given.json)


if __name__ == "__main__":
    main()
