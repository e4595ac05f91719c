"""What private training costs question answering: SQuAD 2 questions with MiniLM, epsilon 8 against none.

    python benchmarks/answers.py                              # both trainings of the last two layers, one seed
    python benchmarks/answers.py --cells private-head,plain-full

Rows are `squad2-dev` of the data folder, parted by article: 4,700 questions of 12 articles to train on, 1,378 of 4
others. Two of those 4 articles choose the threshold for "no answer", as rows that are declared public would; scores are
of the other two. `--choose` scores on an article of the training part, left out of it: settings are chosen there.

Beside the models stand two answers that read nothing of a question: always "no answer", and the majority answer, the
most frequent cell of the training part. Records are learned from in one window each, with 16 bits; the frozen layers
below are computed once for all cells that train the same ones. Each cell is a training run of its own; its scores are
kept in the results file, so a stopped program goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import torch

from corpus import data_folder
from tacit.evaluation.scores import answer_scores, best_threshold
from tacit.training.checkpoint import RunState, run_state
from tacit.training.frozen import PROCESS_MEMORY, ROWS
from tacit.training.models import load_model
from tacit.training.plan import TrainingPlan
from tacit.training.prediction import ranked_rows
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import Answering

EPSILON = 8.0
USUAL = "private-last-2,plain-last-2"
LENGTH = 128
"""Word pieces that are read at a time, a question of some 13 included: a third of what people take, and of its cost."""
STATES_IN_MEMORY = 2**30
"""Bytes of what frozen layers make of the rows, which cells share."""
LEFT_OUT = 1
"""Articles of the training part that settings are chosen on."""


class Choice(NamedTuple):
    strategy: str
    epochs: float
    batch: int
    rate: float
    bound: float = 1.0


CHOICES = {
    "private-head": Choice("head", 20.0, 512, 3e-3, 1.0),
    "private-last-2": Choice("last-2", 1.0, 512, 1e-3, 2.0),
    "plain-head": Choice("head", 20.0, 512, 3e-3),
    "plain-last-2": Choice("last-2", 2.0, 32, 2e-4),
    "plain-full": Choice("full", 2.0, 32, 1e-4),
}


def articles(part: str) -> dict[str, list[dict[str, str]]]:
    """The questions of a part, by article, in the order of the file."""
    path = data_folder() / "squad2-dev" / f"{part}.jsonl.gz"
    if not path.is_file():
        raise SystemExit(f"{path.name} is not here: set TACIT_DATA to the folder of the data sets")
    by_title: dict[str, list[dict[str, str]]] = {}
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        row = json.loads(line)
        by_title.setdefault(row["title"], []).append(
            {"question": row["question"], "context": row["context"], "answer": json.dumps(row["answers"])}
        )
    return by_title


def parts(choose: bool) -> tuple[list[dict[str, str]], list[dict[str, str]], list[dict[str, str]]]:
    """The rows to train on, those that choose the threshold, and those that are scored."""
    train, test = list(articles("train").values()), list(articles("test").values())
    if choose:
        left_out = train[-LEFT_OUT:]
        train, middle = train[:-LEFT_OUT], len(left_out[0]) // 2
        public, scored = [left_out[0][:middle]], [left_out[0][middle:]]
    else:
        public, scored = test[:2], test[2:]
    return tuple([row for article in part for row in article] for part in (train, public, scored))  # type: ignore[return-value]


def scores(rows: list[dict[str, str]], predicted: list[str]) -> dict[str, float]:
    return asdict(answer_scores([row["answer"] for row in rows], predicted))


def run_cell(
    cell: str, seed: int, work: Path, choice: Choice, *, choose: bool, length: int = LENGTH
) -> dict[str, object]:
    strategy, epochs, batch, rate, bound = choice
    rows, public, scored = parts(choose)
    task = Answering(length=length, learned="best")
    task.learn(rows)
    torch.manual_seed(seed)
    model, tokenizer = load_model(task, "minilm")
    model = apply_strategy(model, strategy)
    plan = (
        TrainingPlan.calibrated(epsilon=EPSILON, records=len(rows), batch=batch, epochs=epochs)
        if cell.startswith("private")
        else TrainingPlan.without_privacy(records=len(rows), batch=batch, epochs=epochs)
    )
    settings = TrainingSettings(
        learning_rate=rate, strategy=strategy, model="minilm", physical=16, checkpoint_every=1000, clipping="flat",
        bound=bound, precision="bf16",
    )  # fmt: skip
    folder = work / f"{cell}-{'-'.join(map(str, choice))}-{length}-{choose}-{seed}"
    resume = run_state(folder) is RunState.UNFINISHED
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    run = TrainingRun(task, model, tokenizer, rows, plan, settings, folder, seed=seed, prepared=show_frozen)
    start = time.process_time()

    def show(progress):  # type: ignore[no-untyped-def]
        if progress.step % max(1, progress.steps // 20) == 0 or progress.step == progress.steps:
            print(f"  step {progress.step} of {progress.steps}, loss {progress.facts.loss:.3f}", flush=True)

    run.run(show, resume=resume)
    cpu = time.process_time() - start
    rankings = ranked_rows(task, model, tokenizer, public)
    truth, texts = [row["answer"] for row in public], [ranking.text for ranking in rankings]
    threshold = best_threshold(truth, texts, [ranking.difference for ranking in rankings])
    rankings = ranked_rows(task, model, tokenizer, scored)
    result = {
        "cpu": cpu, "noise": plan.multiplier, "steps": plan.steps, "threshold": threshold,
        "at 0": scores(scored, [ranking.predicted(0.0) for ranking in rankings]),
        "at threshold": scores(scored, [ranking.predicted(threshold) for ranking in rankings]),
        "always answering": scores(scored, [ranking.text for ranking in rankings]),
    }  # fmt: skip
    shutil.rmtree(folder)
    return result


def show_frozen(done: int, rows: int) -> None:
    if done * 10 // rows != max(0, done - ROWS) * 10 // rows:
        print(f"  frozen layers: {done} of {rows} rows", flush=True)


def floors(choose: bool) -> dict[str, dict[str, float]]:
    """The scores of answers that read nothing private of the test rows."""
    train, _, scored = parts(choose)
    majority = Counter(row["answer"] for row in train).most_common(1)[0][0]
    answers = json.loads(majority)
    said = answers[0]["text"] if answers else ""
    return {
        f"majority answer of training ({said!r})": scores(scored, [said] * len(scored)),
        "always no answer": scores(scored, [""] * len(scored)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default=USUAL, help=f"of {', '.join(CHOICES)}")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path("answers.json"))
    parser.add_argument("--work", type=Path, default=Path("answers-runs"))
    parser.add_argument("--choose", action="store_true", help="score on an article of the training part")
    parser.add_argument("--length", type=int, default=LENGTH, help="word pieces that are read at a time")
    parser.add_argument("--strategy")
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--bound", type=float)
    given = parser.parse_args()
    torch.set_num_threads(1)
    PROCESS_MEMORY.most_bytes = STATES_IN_MEMORY
    for seed in range(1, given.seeds + 1):
        for cell in given.cells.split(","):
            asked = (given.strategy, given.epochs, given.batch, given.rate, given.bound)
            choice = Choice(*(u if a is None else a for a, u in zip(asked, CHOICES[cell], strict=True)))
            name = f"{cell} {' '.join(map(str, choice))} length {given.length} seed {seed}"
            name = f"chosen on {name}" if given.choose else name
            if name not in read(given.results):
                print(name, flush=True)
                result = run_cell(cell, seed, given.work, choice, choose=given.choose, length=given.length)
                # Another process may have added its own in the meantime.
                given.results.write_text(json.dumps({**read(given.results), name: result}, indent=1) + "\n")
    show_table(read(given.results), given.choose)


def read(results: Path) -> dict[str, dict]:  # type: ignore[type-arg]
    return json.loads(results.read_text()) if results.exists() else {}


def show_table(cells: dict[str, dict], choose: bool) -> None:  # type: ignore[type-arg]
    lines = dict(floors(choose))
    groups: dict[str, list[dict]] = {}  # type: ignore[type-arg]
    for name, cell in cells.items():
        if name.startswith("chosen on") == choose:
            groups.setdefault(name.rpartition(" seed ")[0], []).append(cell)
    for name, group in sorted(groups.items()):
        for way in ("at 0", "at threshold", "always answering"):
            means = {key: mean(cell[way][key] for cell in group) for key in group[0][way]}
            lines[f"{name}, {way} ({len(group)} seeds)"] = means
    columns = ("exact", "f1", "exact_with", "f1_with", "exact_without")
    print(f"\n{'':68}" + "".join(f"{column:>14}" for column in columns))
    for name, values in lines.items():
        print(f"{name:68}" + "".join(f"{values[column]:14.4f}" for column in columns))


if __name__ == "__main__":
    main()
