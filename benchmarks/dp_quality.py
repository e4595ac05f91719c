"""What private training costs in quality: SST-2 sentiment and parts of speech with MiniLM, epsilon 3 against none.

    python benchmarks/dp_quality.py                    # all cells, 3 seeds: about 4 hours of one core
    python benchmarks/dp_quality.py --sets pos --seeds 1
    python benchmarks/dp_quality.py --sets sst2 --privacy private --average 0.3 --schedule constant

Each cell (data set, privacy, seed) is a training run of its own; its score is kept in the results file, so a stopped
program goes on where it was. Settings were chosen on the development rows of the first seed; scores are of test rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import torch

from corpus import data_rows
from tacit.evaluation.scores import classification_scores, tagging_scores
from tacit.precision import TrainingPrecision
from tacit.training.checkpoint import RunState, run_state
from tacit.training.models import load_model
from tacit.training.plan import TrainingPlan
from tacit.training.prediction import predict_rows
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import Classification, Tagging

EPSILON = 3.0


class Choice(NamedTuple):
    strategy: str
    epochs: float
    batch: int
    rate: float
    bound: float = 0.0
    average: float | None = None
    schedule: str = "linear"
    precision: TrainingPrecision = "float32"

    @property
    def name(self) -> str:
        """All settings; of the last three those that are not as usual."""
        more = [f"average {self.average}"] if self.average is not None else []
        unusual = [value for value, usual in ((self.schedule, "linear"), (self.precision, "float32")) if value != usual]
        return " ".join([*map(str, self[:5]), *more, *unusual])


GOALS = {"sst2": "at most .04 below non-private", "pos": "at least .78 macro-F1"}

CHOICES = {
    ("sst2", "private"): Choice("bias", 3.0, 1024, 5e-3, 8.0),
    ("sst2", "plain"): Choice("full", 1.0, 128, 1e-4),
    ("pos", "private"): Choice("all-layers", 5.0, 1024, 1e-2, 1.0),
    ("pos", "plain"): Choice("full", 3.0, 32, 1e-4),
}


def rows_of(data: str, part: str) -> list[dict[str, str]]:
    zipped = ".gz" if part == "train" else ""
    if data == "sst2":
        found = data_rows(f"sst2/{part}.tsv{zipped}")
        return [{"text": row["sentence"], "label": row["label"]} for row in found]
    return [{"text": row["tokens"], "tags": row["upos"]} for row in data_rows(f"ud-ewt-pos/{part}.tsv{zipped}")]


def score(data: str, rows: list[dict[str, str]], found: list[str]) -> float:
    if data == "sst2":
        return classification_scores([row["label"] for row in rows], found).accuracy
    return tagging_scores([row["tags"].split() for row in rows], [line.split() for line in found]).tokens.macro_f1


def run_cell(data: str, privacy: str, seed: int, work: Path, choice: Choice) -> dict[str, float]:
    strategy, epochs, batch, rate, bound, average, schedule, precision = choice
    rows = rows_of(data, "train")
    task = Classification(length=64, smoothing=0.1) if data == "sst2" else Tagging(length=64)
    task.learn(rows)
    torch.manual_seed(seed)
    model, tokenizer = load_model(task, "minilm")
    model = apply_strategy(model, strategy)
    plan = (
        TrainingPlan.calibrated(epsilon=EPSILON, records=len(rows), batch=batch, epochs=epochs)
        if privacy == "private"
        else TrainingPlan.without_privacy(records=len(rows), batch=batch, epochs=epochs)
    )
    settings = TrainingSettings(
        learning_rate=rate, strategy=strategy, model="minilm", physical=64, checkpoint_every=1000, clipping="flat",
        bound=bound or 1.0, average=average, schedule=schedule, precision=precision,
    )  # fmt: skip
    folder = work / f"{data}-{privacy}-{choice.name.replace(' ', '-')}-{seed}"
    resume = run_state(folder) is RunState.UNFINISHED
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    run = TrainingRun(task, model, tokenizer, rows, plan, settings, folder, seed=seed)
    start = time.process_time()

    def show(progress):  # type: ignore[no-untyped-def]
        if progress.step % 20 == 0 or progress.step == progress.steps:
            print(f"  step {progress.step} of {progress.steps}, loss {progress.facts.loss:.3f}", flush=True)

    run.run(show, resume=resume)
    result = {"cpu": time.process_time() - start, "noise": plan.multiplier, "steps": plan.steps}
    for part in ("dev", "test"):
        tested = rows_of(data, part)
        result[part] = score(data, tested, predict_rows(task, model, tokenizer, tested))
    shutil.rmtree(folder)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="sst2,pos")
    parser.add_argument("--privacy", default="private,plain")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("dp-quality.json"))
    parser.add_argument("--work", type=Path, default=Path("dp-quality-runs"))
    parser.add_argument("--strategy")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--bound", type=float)
    parser.add_argument("--average", type=float, help="save the mean weights of this share of the steps, the last ones")
    parser.add_argument("--schedule", choices=("linear", "cosine", "constant"))
    parser.add_argument("--precision", choices=("float32", "fast", "bf16"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    cells: dict[str, dict[str, float]] = json.loads(given.results.read_text()) if given.results.exists() else {}
    for seed in range(1, given.seeds + 1):
        for data in given.sets.split(","):
            for privacy in given.privacy.split(","):
                usual = CHOICES[data, privacy]
                asked = (
                    given.strategy,
                    given.epochs,
                    given.batch,
                    given.rate,
                    given.bound,
                    given.average,
                    given.schedule,
                    given.precision,
                )
                choice = Choice(*(u if a is None else a for a, u in zip(asked, usual, strict=True)))
                name = f"{data} {privacy} {choice.name} seed {seed}"
                if name not in cells:
                    print(name, flush=True)
                    cells[name] = run_cell(data, privacy, seed, given.work, choice)
                    given.results.write_text(json.dumps(cells, indent=1) + "\n")
    show_table(cells)


def show_table(cells: dict[str, dict[str, float]]) -> None:
    groups: dict[str, list[dict[str, float]]] = {}
    for name, cell in cells.items():
        groups.setdefault(name.rpartition(" seed ")[0], []).append(cell)
    print(f"\n{'cell':60} {'seeds':>5} {'dev':>7} {'test':>7} {'(sd)':>7} {'noise':>6} {'CPU s':>7}")
    for name, found in sorted(groups.items()):
        tests = [cell["test"] for cell in found]
        spread = stdev(tests) if len(tests) > 1 else 0.0
        print(
            f"{name:60} {len(found):5} {mean(c['dev'] for c in found):7.4f} {mean(tests):7.4f} {spread:7.4f} "
            f"{found[0]['noise']:6.3f} {mean(c['cpu'] for c in found):7.0f}"
        )
    for data, goal in GOALS.items():
        print(f"goal for {data} at epsilon {EPSILON:g}: {goal}")


if __name__ == "__main__":
    main()
