"""What `tacit guide` tells people to expect: each way that it recommends, on public data sets of several sizes.

    python benchmarks/guide.py --results cells.json [--ways matching,training] [--sets snips] [--sizes 1000] [--seeds 3]
    python benchmarks/guide.py --results cells.json --write

A cell is a way, a data set, a number of private rows and a seed; it is kept in the results file, so a stopped program
goes on where it was. `--write` puts the cells into the table that `tacit guide` reads
(`src/tacit/jobs/guide/measures.json`; its other lines stay, each with the version that it was measured with) and prints
it for docs/guide.md. Private rows are a random part of the training rows; scores are of at most 2,000 original test
rows. Every way runs with the options that `tacit guide` writes into its command, and nothing was chosen by the scores.

    matching   rows drawn by `tacit synthesize`: macro-F1 of two learners trained on them (words and pairs of words, and
               vectors of the static encoder); the worse one counts
    training   `tacit train classify`: macro-F1 of the model
    codebook   `tacit rewrite --level document --randomize label`: the same learners on the released rows
    words      `tacit rewrite` word by word, labels as they are: the learner of words, and the share of words that stay
    topics     `tacit synthesize --topics`: half the sum of the differences between released and true shares of topics
    original   the private rows themselves, without any protection: the same learners
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from matching import read, vectors, words
from tacit.jobs.guide.measures import MEASURES, Measured, measured_scores
from tacit.jobs.guide.rules import EPSILON, TOPIC_COUNT, Way
from tacit.jobs.guide.ways import batch_for
from tacit.version import __version__

MOST_TEST_ROWS = 2_000
SIZES = (500, 1_000, 3_000, 10_000)
LOOK_ALIKES = {
    "snips": "requests to an assistant",
    "agnews": "news",
    "sst2": "opinions in film reviews",
    "banking77": "questions to a bank",
}
Rows = tuple[Sequence[str], Sequence[str]]
Scores = dict[str, float]


class Learners:
    """The learners of `benchmarks/matching.py` that need no neural model, loaded once."""

    def __init__(self) -> None:
        self._learners: dict[str, Any] = {}

    def scores(self, rows: Rows, test: Rows, names: Sequence[str] = ("words", "static")) -> Scores:
        """The macro-F1 of each learner, trained on rows."""
        from sklearn.metrics import f1_score

        for name in names:
            if name not in self._learners:
                self._learners[name] = words if name == "words" else vectors(name)
        return {
            name: float(f1_score(test[1], self._learners[name](*rows, test[0]), average="macro", zero_division=0))
            for name in names
        }


LEARNERS = Learners()


def records(rows: Rows) -> list[dict[str, str]]:
    return [{"text": text, "label": label} for text, label in zip(*rows, strict=True)]


def by_matching(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """Learners on a corpus that is drawn by noisy sums."""
    made = tacit.synthesize(
        records(rows), label_column="label", labels=labels, epsilon=EPSILON[Way.MATCHING],
        output=folder / "out.csv",
    )  # fmt: skip
    return LEARNERS.scores((made.columns["text"], made.columns["label"]), test)


def by_training(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """A model that is trained with noise."""
    from sklearn.metrics import f1_score

    tacit.train(
        "classify", records(rows), labels=labels, epsilon=EPSILON[Way.TRAINING], output=folder / "model",
        **batch_for(len(rows[0])),
    )  # fmt: skip
    guesses = tacit.predict(folder / "model", list(test[0])).predictions
    return {"model": float(f1_score(test[1], list(guesses), average="macro", zero_division=0))}


def by_codebook(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """Learners on texts that are replaced one by one, each together with its label."""
    released = tacit.rewrite(
        records(rows), level="document", columns="text", epsilon=EPSILON[Way.CODEBOOK], randomize="label",
        labels=tuple(labels),
    ).data  # fmt: skip
    return LEARNERS.scores(([row["text"] for row in released], [str(row["label"]) for row in released]), test)


def by_words(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """The learner of words on texts that are rewritten word by word, and the share of words that stay."""
    released = tacit.rewrite(
        records(rows), columns="text", keep="label", epsilon=EPSILON[Way.WORDS]
    ).data  # fmt: skip
    pairs = [
        (old, new)
        for text, row in zip(rows[0], released, strict=True)
        for old, new in zip(text.lower().split(), row["text"].split(), strict=False)
    ]
    scores = LEARNERS.scores(
        ([row["text"] for row in released], [str(row["label"]) for row in released]), test, ["words"]
    )
    return {**scores, "words that stay": sum(old == new for old, new in pairs) / max(1, len(pairs))}


def by_topics(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """How far the released shares of topics are from the true ones, between 0 and 1."""
    from tacit.matching.labels import public_topics

    released = tacit.sketch(list(rows[0]), topics=TOPIC_COUNT, epsilon=EPSILON[Way.TOPICS]).sketch
    counts = np.maximum(released.counts, 0)
    true = np.bincount(public_topics(TOPIC_COUNT, "static").places(rows[0], ()), minlength=TOPIC_COUNT)
    return {"distance": float(np.abs(counts / max(1.0, counts.sum()) - true / true.sum()).sum() / 2)}


def original(rows: Rows, test: Rows, labels: Sequence[str], folder: Path) -> Scores:
    """Learners on the private rows themselves."""
    return LEARNERS.scores(rows, test)


WAYS: Mapping[str, Callable[[Rows, Rows, Sequence[str], Path], Scores]] = {
    Way.MATCHING.value: by_matching,
    Way.TRAINING.value: by_training,
    Way.CODEBOOK.value: by_codebook,
    Way.WORDS.value: by_words,
    Way.TOPICS.value: by_topics,
    "original": original,
}


def sampled(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many rows, drawn with a public seed."""
    places = np.random.default_rng(seed).permutation(len(rows[0]))[:most]
    return [rows[0][place] for place in places], [rows[1][place] for place in places]


def measure(options: argparse.Namespace, cells: dict[str, Any]) -> None:
    """Every cell that is missing, written down at once."""
    for seed in range(options.seeds):
        for name in options.sets.split(","):
            whole, test = read(name, 0), sampled(read(name, 1), MOST_TEST_ROWS, 0)
            labels = sorted(set(whole[1]))
            for size in options.sizes:
                for way in options.ways.split(","):
                    key = f"{way}/{name}/{size}/{seed}"
                    if key in cells or size > len(whole[0]):
                        continue
                    started = time.process_time()
                    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        scores = WAYS[way](sampled(whole, size, 1 + seed), test, labels, Path(folder))
                    cells[key] = {"labels": len(labels), "scores": scores, "version": version()}
                    options.results.write_text(json.dumps(cells, indent=1))
                    shown = "  ".join(f"{key} {value:.3f}" for key, value in scores.items())
                    print(f"{key:32}{shown}  ({time.process_time() - started:.0f} CPU seconds)", flush=True)


def version() -> str:
    """The version of Tacit, with the commit where it is a clone."""
    place = Path(tacit.__file__).parent
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=place, capture_output=True, text=True)
    commit = os.environ.get("TACIT_COMMIT") or done.stdout.strip()
    return f"{__version__} ({commit})" if commit else __version__


def table(cells: Mapping[str, Any]) -> list[Measured]:
    """The means over seeds, with the original rows beside them."""
    groups: dict[tuple[str, str, int], list[Any]] = {}
    for key, cell in cells.items():
        way, name, size, _ = key.split("/")
        groups.setdefault((way, name, int(size)), []).append(cell)
    rows = []
    for (way, name, size), group in sorted(groups.items()):
        if way == "original":
            continue
        names = [score for score in group[0]["scores"] if score != "words that stay"]
        counted = [min(cell["scores"][score] for score in names) for cell in group]
        private = groups.get(("original", name, size), [])
        rows.append(
            Measured(
                way=Way(way),
                data_set=name,
                kind=LOOK_ALIKES[name],
                labels=group[0]["labels"],
                rows=size,
                epsilon=EPSILON[Way(way)],
                score=round(float(np.mean(counted)), 3),
                spread=round(float(np.std(counted)), 3),
                seeds=len(group),
                learners=tuple(names),
                original=round(float(np.mean([min(cell["scores"].values()) for cell in private])), 3)
                if private and way != Way.TOPICS.value
                else None,
                stays=round(float(np.mean([cell["scores"]["words that stay"] for cell in group])), 3)
                if way == Way.WORDS.value
                else None,
                version=group[0]["version"],
            )
        )
    return rows


def merged(old: Sequence[Measured], new: Sequence[Measured]) -> list[Measured]:
    """The lines of a table with those that were measured again in their place."""
    lines = {(row.way.value, row.data_set, row.rows): row for row in [*old, *new]}
    return [lines[key] for key in sorted(lines)]


def markdown(rows: Sequence[Measured]) -> list[str]:
    """The table as docs/guide.md shows it: a way and a data set in a row, a number of private rows in a column."""
    lines = ["| way | data | labels | " + " | ".join(f"{size:,} rows" for size in SIZES) + " |"]
    lines.append("|---|---|---|" + "---|" * len(SIZES))
    for way, name in dict.fromkeys((row.way, row.data_set) for row in rows):
        sizes = {row.rows: row for row in rows if (row.way, row.data_set) == (way, name)}
        some = next(iter(sizes.values()))
        scores = " | ".join(shown(sizes[size]) if size in sizes else "" for size in SIZES)
        lines.append(f"| {way.value}, epsilon {some.epsilon:g} | {some.kind} ({name}) | {some.labels} | {scores} |")
    return lines


def shown(row: Measured) -> str:
    """A score, its standard deviation if it was measured several times, and that of the original rows."""
    spread = f" ± {row.spread:.2f}" if row.seeds > 1 else ""
    original = "" if row.original is None else f" of {row.original:.2f}"
    return f"{row.score:.2f}{spread}{original}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="the file of cells")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--sets", default=",".join(LOOK_ALIKES))
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write the table of 'tacit guide' and measure nothing")
    options = parser.parse_args()
    cells = json.loads(options.results.read_text()) if options.results.exists() else {}
    if not options.write:
        measure(options, cells)
        return
    rows = merged(measured_scores(), table(cells))
    MEASURES.write_text("[\n" + ",\n".join(json.dumps(row.to_dict()) for row in rows) + "\n]\n")
    print(f"{len(rows)} rows -> {os.path.relpath(MEASURES)}\n")
    for line in markdown(rows):
        print(line)


if __name__ == "__main__":
    main()
