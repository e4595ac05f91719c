"""Synthetic text from a private model: is it as good to learn from as the real rows, and does it copy them?

    python benchmarks/synthetic_text.py CELLS                       # about 10 minutes of one core
    python benchmarks/synthetic_text.py CELLS --epsilons 8 --rows 1000 --written 500

Snips, 7 intents: a small public model (benchmarks/public_writer.py) is trained on the rows with their intents as
control codes at each epsilon (inf: without noise), writes as many rows, and a classifier (logistic regression on word
weights) learns the intents from them. It is tested on the real test rows. Baselines in the same run: the same
classifier trained on the real rows, and the floor of guessing. Beside it: the error of the noisy label counts, what the
filters refused, and copies of private rows beside the chance of real ones (Fisher's exact test).

`--codes` compares a loss on the text alone with one that counts the control codes too, at the first epsilon.

Every cell is kept as JSON in the folder CELLS, so a stopped program goes on where it was. Texts are public data; the
cells use real noise, so numbers differ from run to run.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import torch

from corpus import data_folder
from measure import Report, say
from public_writer import public_writer
from tacit.auditing.models.synthetic import compare_with_private
from tacit.evaluation.downstream import Labeled, evaluate_downstream
from tacit.evaluation.learners import make_learner
from tacit.noise.source import public_generator
from tacit.training.models import load_model
from tacit.training.origin import starting_weights
from tacit.training.plan import TrainingPlan
from tacit.training.run import TrainingSettings
from tacit.training.synthesis import (
    Budget,
    ControlledWriting,
    Filters,
    PrivateWriter,
    Sampling,
    WriterTraining,
    exact_counts,
    learn_codes,
    model_writer,
    write_rows,
)

LENGTH = 32
# epochs, batch, learning rate; not tuned
PRIVATE = (5.0, 512, 3e-3)
PLAIN = (1.0, 32, 1e-3)


def snips(part: str, rows: int | None = None) -> list[dict[str, str]]:
    with (data_folder() / "snips" / f"{part}.tsv").open(encoding="utf-8") as file:
        found = [line.rstrip("\n").split("\t") for line in file][1:]
    chosen = found if rows is None else [found[i] for i in public_generator(0).permutation(len(found))[:rows]]
    return [{"intent": intent, "text": text} for intent, text, *_ in chosen]


def cell(folder: Path, name: str, make: Any) -> dict[str, Any]:
    """A result that is computed once."""
    path = folder / f"{name}.json"
    if not path.exists():
        say(f"cell {name} ...")
        cpu = time.process_time()
        found = make()
        found["cpu seconds"] = time.process_time() - cpu
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def written(given: Any, public: Path, epsilon: float, count_codes: bool) -> dict[str, Any]:
    """Train at this epsilon, write, and measure what was written."""
    rows = snips("train", given.rows)
    codes = learn_codes(rows, ["intent"])
    task = ControlledWriting(length=LENGTH, codes=codes, count_codes=count_codes)
    budget = Budget(epsilon)
    epochs, batch, rate = PRIVATE if budget.private else PLAIN
    sizes: Any = {"records": len(rows), "batch": min(batch, len(rows)), "epochs": epochs}
    plan = (
        TrainingPlan.calibrated(epsilon=budget.for_training(counted=True), **sizes)
        if budget.private
        else TrainingPlan.without_privacy(**sizes)
    )
    torch.manual_seed(0)
    model, tokenizer = load_model(task, str(public))
    settings = TrainingSettings(learning_rate=rate, physical=64, strategy="full", model="public-writer")
    place = given.cells / f"model-{epsilon:g}-{'all' if count_codes else 'text'}"
    shutil.rmtree(place, ignore_errors=True)
    training = WriterTraining(
        task, model, tokenizer, rows, plan, settings, place, origin=starting_weights(public), budget=budget
    )
    cpu = time.process_time()
    promised = training.run(
        lambda p: say(f"  step {p.step} of {p.steps}, loss {p.facts.loss:.3f}") if p.step % 10 == 0 else None
    )
    trained = time.process_time() - cpu
    writer = PrivateWriter.open(place)
    sampling, filters = Sampling(), Filters()
    cpu = time.process_time()
    found = write_rows(
        model_writer(*writer.load(), writer.task, sampling), writer.counts, given.written, task=writer.task,
        filters=filters, sampling=sampling, progress=lambda done, total: None,
    )  # fmt: skip
    wrote = time.process_time() - cpu
    exact = exact_counts(rows, codes)
    noisy = writer.counts.counts
    total = max(1, sum(noisy.values()))
    error = 0.5 * sum(abs(exact[c] / len(rows) - noisy[c] / total) for c in exact)
    texts = [text for _, text in found.rows]
    copies = compare_with_private(texts, [row["text"] for row in rows], compared=300)
    shutil.rmtree(place)
    return {
        "epsilon": promised.epsilon if promised.is_private else None,
        "delta": promised.delta,
        "labels": [c[0] for c, _ in found.rows],
        "texts": texts,
        "generated": found.generated,
        "refused": found.refused,
        "missing": sum(found.missing.values()),
        "label count error": error,
        "copies": copies.share,
        "copies by chance": copies.chance_share,
        "copies p": copies.p_value,
        "training cpu": trained,
        "writing cpu": wrote,
    }


def downstream(given: Any, releases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Learn the intents from each release, and from as many and from all real rows."""
    rows, tested = snips("train", given.rows), snips("test")
    labeled = {name: Labeled(found["texts"], found["labels"]) for name, found in releases.items()}
    some = rows[: given.written]
    labeled["as many real rows"] = Labeled([row["text"] for row in some], [row["intent"] for row in some])
    found = evaluate_downstream(
        "classification",
        make_learner("tfidf", "classification"),
        Labeled([row["text"] for row in rows], [row["intent"] for row in rows]),
        labeled,
        Labeled([row["text"] for row in tested], [row["intent"] for row in tested]),
        seeds=(1,),
    )
    arms = {"all real rows": found.ceiling, **{arm.name: arm for arm in found.arms}}
    return {
        "floor": found.floor.value,
        **{name: [arm.value, arm.over_items.low, arm.over_items.high] for name, arm in arms.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path, help="folder for the results, one JSON file per cell")
    parser.add_argument("--public", type=Path, help="folder of the public model; by default inside CELLS")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[3.0, 8.0, math.inf])
    parser.add_argument("--rows", type=int, default=None, help="private rows; by default all 13,084")
    parser.add_argument("--written", type=int, default=1_000, help="synthetic rows")
    parser.add_argument("--codes", action="store_true", help="also with a loss that counts the control codes")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers to this file as well")
    given = parser.parse_args()
    given.cells.mkdir(parents=True, exist_ok=True)
    public = public_writer(given.public or given.cells / "public")
    size = "all" if given.rows is None else str(given.rows)
    releases: dict[str, dict[str, Any]] = {}
    for epsilon in given.epsilons:
        for count_codes in (False, True) if given.codes and epsilon == given.epsilons[0] else (False,):
            name = f"epsilon {epsilon:g}" + (", codes counted" if count_codes else "")
            key = f"{size}-{given.written}-{epsilon:g}-{'all' if count_codes else 'text'}"
            releases[name] = cell(given.cells, key, lambda e=epsilon, c=count_codes: written(given, public, e, c))
    scores = downstream(given, releases)
    report = Report("synthetic_text")
    table = [[name, f"{value[0]:.3f}", f"{value[1]:.3f} to {value[2]:.3f}"]
             for name, value in scores.items() if name != "floor"]  # fmt: skip
    report.table(
        f"Macro-F1 of intents on 700 real test rows, by what was learned from (floor {scores['floor']:.3f})",
        ("trained on", "macro-F1", "95 % over test rows"),
        table,
    )
    report.table(
        f"{given.written:,} synthetic rows",
        ("", "label count error", "refused", "copies", "copies by chance", "p", "CPU s training", "writing"),
        [
            [name, f"{f['label count error']:.2%}", f"{sum(f['refused'].values()) / f['generated']:.1%}",
             f"{f['copies']:.1%}", f"{f['copies by chance']:.1%}", f"{f['copies p']:.2g}",
             f"{f['training cpu']:.0f}", f"{f['writing cpu']:.0f}"]
            for name, f in releases.items()
        ],
    )  # fmt: skip
    for name, found in releases.items():
        pairs = list(zip(found["labels"], found["texts"], strict=True))[:3]
        report.notes += [f"{name}: {label}: {text}" for label, text in pairs]
    report.facts["downstream"] = scores
    report.facts["cells"] = {n: {k: v for k, v in f.items() if k not in ("texts", "labels")}
                             for n, f in releases.items()}  # fmt: skip
    report.show(given.json)


if __name__ == "__main__":
    main()
