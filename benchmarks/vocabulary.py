"""Private vocabularies: how much of the true one they hold, and what a BiLSTM loses or gains with one.

Words: IMDb reviews (a fixed part, 5,000) and the paragraphs of WikiText-2. For each epsilon: the words that are shown,
how many of the 500 and 2,000 most frequent ones are among them, the share of running words they cover, the threshold,
and CPU seconds. Delta is that of a training run (records^-1.5), at most 100 words of a record count, shared weights.

Model: a BiLSTM from scratch on SST-2 (a part), with all of epsilon 3 for training and the public pieces of MiniLM, or
with 0.5 of it for a tokenizer of its own. Accuracy on the development set, mean of the seeds.

    python benchmarks/vocabulary.py              both
    python benchmarks/vocabulary.py --words      the words only (a minute)
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from corpus import data_folder
from measure import Report, arguments_parser, say

EPSILONS = (0.5, 1.0, 3.0, 8.0)
TOTAL, FOR_WORDS = 3.0, 0.5


def imdb() -> list[str]:
    with gzip.open(data_folder() / "imdb-subset" / "train.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        return [line.rstrip("\n").split("\t")[2].replace("<br />", " ") for line in lines]


def wikitext() -> list[str]:
    with gzip.open(data_folder() / "wikitext2-raw" / "train.txt.gz", "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines if len(line.split()) > 3]


def words(report: Report) -> None:
    from tacit.account.delta import automatic_delta
    from tacit.training.vocabulary import private_histogram
    from tacit.training.vocabulary.histogram import words_of

    facts: dict[str, Any] = {}
    rows = []
    for name, texts in (("IMDb", imdb()), ("WikiText-2", wikitext())):
        say(f"{name}: {len(texts):,} records")
        truth = Counter(word for text in texts for word in words_of(text))
        ranked = [word for word, _ in truth.most_common()]
        everything = sum(truth.values())
        for epsilon in EPSILONS:
            started = time.process_time()
            made = private_histogram(texts, epsilon=epsilon, delta=automatic_delta(len(texts)))
            seconds = time.process_time() - started
            found = set(made.words)
            top = {size: len(found & set(ranked[:size])) / size for size in (500, 2000)}
            covered = sum(truth[word] for word in found) / everything
            facts[f"{name} {epsilon:g}"] = {"words": len(made), "top": top, "covered": covered, "seconds": seconds}
            threshold = str(made.guarantee.parameters["threshold"]).split()[0]
            shown = (
                f"{top[500]:.0%}",
                f"{top[2000]:.0%}",
                f"{covered:.1%}",
                f"{float(threshold):.1f}",
                f"{seconds:.1f}",
            )
            described = f"{name}, {len(texts):,} records, {len(ranked):,} words"
            rows.append([described, f"{epsilon:g}", f"{len(made):,}", *shown])
    columns = ["text", "epsilon", "words shown", "of top 500", "of top 2,000", "running words", "threshold", "CPU s"]
    report.table("private vocabularies", columns, rows)
    report.facts["words"] = facts


def sst2(path: str, count: int | None = None) -> list[dict[str, str]]:
    place = data_folder() / "sst2" / path
    with gzip.open(place, "rt", encoding="utf-8") if path.endswith(".gz") else place.open(encoding="utf-8") as lines:
        next(lines)
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [{"text": row[0], "label": row[1]} for row in rows[:count]]


def trained(rows: list[dict[str, str]], tokenizer: str | None, epsilon: float, seed: int, folder: Path) -> Any:
    import torch

    from tacit.training.models import load_model
    from tacit.training.plan import TrainingPlan
    from tacit.training.run import TrainingRun, TrainingSettings
    from tacit.training.tasks import Classification

    task = Classification(length=32)
    task.learn(rows)
    torch.manual_seed(seed)
    model, pieces = load_model(task, "bilstm-1x64", tokenizer=tokenizer)
    plan = TrainingPlan.calibrated(epsilon=epsilon, records=len(rows), batch=512, epochs=6)
    settings = TrainingSettings(learning_rate=5e-3, physical=128, model="bilstm")
    run = TrainingRun(task, model, pieces, rows, plan, settings, folder, seed)
    run.run()
    return run


def accuracy(run: Any, rows: list[dict[str, str]]) -> float:
    run.model.eval()
    right = 0
    for start in range(0, len(rows), 128):
        part = rows[start : start + 128]
        encoded = [run.task.encode(row, run.tokenizer, train=False) for row in part]
        guessed = run.task.predict(run.model, run.task.collate(encoded, run.tokenizer), run.tokenizer, part)
        right += sum(a == row["label"] for a, row in zip(guessed, part, strict=True))
    return right / len(rows)


def model(report: Report, count: int, seeds: int) -> None:
    from tacit.training.vocabulary import build_tokenizer, private_histogram, save_vocabulary

    rows, held_out = sst2("train.tsv.gz", count), sst2("dev.tsv")
    table, facts = [], {}
    with tempfile.TemporaryDirectory() as place:
        made = private_histogram([row["text"] for row in rows], epsilon=FOR_WORDS, seed=1)
        own = Path(place) / "words"
        save_vocabulary(own, made, build_tokenizer(made, size=4000))
        for name, tokenizer, epsilon in (
            (f"public pieces (MiniLM), epsilon {TOTAL:g} for training", None, TOTAL),
            (
                f"private pieces, {FOR_WORDS:g} for words, {TOTAL - FOR_WORDS:g} for training",
                str(own),
                TOTAL - FOR_WORDS,
            ),
        ):
            scores, pieces = [], 0
            started = time.process_time()
            for seed in range(seeds):
                run = trained(rows, tokenizer, epsilon, seed, Path(place) / f"{epsilon}-{seed}")
                scores.append(accuracy(run, held_out))
                pieces = len(run.tokenizer)
                say(f"{name}, seed {seed}: {scores[-1]:.3f}")
            seconds = (time.process_time() - started) / seeds
            table.append([name, f"{pieces:,}", f"{sum(scores) / seeds:.3f}", f"{seconds:.0f}"])
            facts[name] = {"pieces": pieces, "accuracy": scores, "seconds": seconds}
    report.table(f"BiLSTM on SST-2, {count:,} sentences", ["tokenizer", "pieces", "accuracy", "CPU s"], table)
    report.facts["model"] = facts


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--words", action="store_true", help="the words only")
    parser.add_argument("--model", action="store_true", help="the model only")
    parser.add_argument("--rows", type=int, default=8000, help="training sentences of the model")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    report = Report("vocabulary")
    if not given.model:
        words(report)
    if not given.words:
        model(report, given.rows, given.seeds)
    report.notes.append("noise of the model's runs is drawn with test seeds: accuracies repeat, nothing is released")
    report.show(given.json)


if __name__ == "__main__":
    main()
