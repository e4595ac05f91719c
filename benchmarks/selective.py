"""Selective privacy: what fine-tuning twice saves in perplexity, beside redaction alone, noise alone, and neither.

    python benchmarks/selective.py CELLS                  # about 6 minutes of one core, public model included

Data: the 1,500 made-up letters and notes with marked personal data of presidio-research (persons, addresses, numbers),
1,200 to train on and 300 to test; the marked places are sensitive. A small public model (benchmarks/public_writer.py)
is trained

    no privacy       on the original text, without noise
    redact only      on redacted text, without noise: the redacted places stay unknown
    private only     on the original text, DP-AdamW at epsilon
    twice            on redacted text without noise, then on the original text at epsilon (replaced records)
    not at all       the public model as it is

and tested on the original test texts and on their redacted form: perplexity over word pieces. Every cell is kept as
JSON, so a stopped program goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch

from corpus import data_folder
from measure import Report, say
from public_writer import public_writer
from synthetic_text import cell
from tacit.guarantee import Adjacency
from tacit.noise.source import public_generator
from tacit.training.models import load_model
from tacit.training.origin import starting_weights
from tacit.training.plan import TrainingPlan
from tacit.training.redaction import redact_text
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.selective import FirstKind, TwoPhases
from tacit.training.synthesis import ControlledWriting

LENGTH = 40
TESTED = 300
# Not tuned.
PLAIN = {"epochs": 2.0, "batch": 16}
PRIVATE = {"epochs": 4.0, "batch": 240}
PLAIN_RATE, PRIVATE_RATE = 1e-3, 2e-3


def letters() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Training and test rows: text, redacted text, in lower case like the public model."""
    with gzip.open(data_folder() / "presidio-synth-pii" / "data.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    rows = []
    for item in found:
        spans = [(span["start"], span["end"]) for span in item["spans"]]
        rows.append({"text": item["text"].lower(), "redacted": redact_text(item["text"], spans).lower()})
    order = public_generator(0).permutation(len(rows))
    return [rows[i] for i in order[TESTED:]], [rows[i] for i in order[:TESTED]]


def perplexity(model: Any, tokenizer: Any, texts: list[str]) -> float:
    task = ControlledWriting(length=LENGTH)
    total = pieces = 0.0
    model.eval()
    with torch.inference_mode():
        for start in range(0, len(texts), 64):
            rows = [{"text": text} for text in texts[start : start + 64]]
            batch = task.collate([task.encode(row, tokenizer, train=True) for row in rows], tokenizer)
            counted = (batch["targets"] != -100).sum(1)
            total += float((task.loss(model, batch) * counted).sum())
            pieces += float(counted.sum())
    return math.exp(total / pieces)


def trained(given: Any, public: Path, name: str) -> dict[str, Any]:
    train, test = letters()
    train = train[: given.rows]
    original, redacted = [{"text": row["text"]} for row in train], [{"text": row["redacted"]} for row in train]
    task, place = ControlledWriting(length=LENGTH), given.cells / f"model-{name.replace(' ', '-')}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(f"{place}.first-phase", ignore_errors=True)
    plain = TrainingSettings(learning_rate=PLAIN_RATE, physical=64, model="public-writer")
    private = TrainingSettings(learning_rate=PRIVATE_RATE, physical=64, model="public-writer")
    without = TrainingPlan.without_privacy(records=len(train), **PLAIN)
    origin = starting_weights(public)

    def load(folder: Path | None) -> tuple[Any, Any]:
        torch.manual_seed(0)
        return load_model(task, str(folder or public))

    def plan(adjacency: Adjacency) -> TrainingPlan:
        return TrainingPlan.calibrated(epsilon=given.epsilon, records=len(train), adjacency=adjacency, **PRIVATE)

    promised = None
    if name in ("no privacy", "redact only"):
        model, tokenizer = load(None)
        rows = original if name == "no privacy" else redacted
        TrainingRun(task, model, tokenizer, rows, without, plain, place, origin=origin).run()
    elif name == "private only":
        model, tokenizer = load(None)
        run = TrainingRun(task, model, tokenizer, original, plan(Adjacency.ADD_REMOVE), private, place, origin=origin)
        promised = run.run()
    elif name == "twice":
        phases = TwoPhases(
            task, load, original, redacted, FirstKind.REDACTED, "the marks of the data set", without,
            plan(Adjacency.REPLACE_ONE), plain, private, place, origin=origin,
        )  # fmt: skip
        promised = phases.run()
    model, tokenizer = load(None if name == "not at all" else place)
    shutil.rmtree(place, ignore_errors=True)
    return {
        "original": perplexity(model, tokenizer, [row["text"] for row in test]),
        "redacted": perplexity(model, tokenizer, [row["redacted"] for row in test]),
        "epsilon": None if promised is None else promised.epsilon,
        "adjacency": None if promised is None else promised.adjacency.value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path, help="folder for the results, one JSON file per cell")
    parser.add_argument("--public", type=Path, help="folder of the public model; by default inside CELLS")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--rows", type=int, default=1_200, help="texts to train on, at least 240")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers to this file as well")
    given = parser.parse_args()
    given.cells.mkdir(parents=True, exist_ok=True)
    public = public_writer(given.public or given.cells / "public")
    rows, facts = [], {}
    for name in ("not at all", "redact only", "private only", "twice", "no privacy"):
        key = f"selective-{name.replace(' ', '-')}-{given.rows}-{given.epsilon:g}"
        found = cell(given.cells, key, lambda n=name: trained(given, public, n))
        facts[name] = found
        promised = "-" if found["epsilon"] is None else f"{found['epsilon']:.2f}"
        say(f"{name}: {found['original']:.1f}")
        rows.append([name, f"{found['original']:.1f}", f"{found['redacted']:.1f}", promised, found["adjacency"] or "-"])
    report = Report("selective")
    report.table(
        f"Perplexity of {TESTED} test texts with a model trained on {given.rows:,}",
        ("training", "original texts", "redacted texts", "epsilon", "promised between"),
        rows,
    )
    report.facts["cells"] = facts
    report.show(given.json)


if __name__ == "__main__":
    main()
