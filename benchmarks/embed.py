"""What a classifier learns from released vectors: Snips and the sets on which the dimensions were chosen.

    python benchmarks/embed.py [--sets snips] [--epsilons 2,4,10,20] [--seeds 3] [--choose]

Vectors of all training rows are released (static encoder), a linear head is trained on nothing else, and macro-F1 is
measured on the test rows, encoded without noise (a user's own texts), and with noise (texts that were released too).
epsilon is that of a whole text against any other; the angular mechanism gets epsilon / pi per radian, which is the same
promise. "no noise" trains on the clean vectors of the same directions. Labels are not covered here; the last line
randomizes them as well, with an epsilon of 3 of their own.

Beside the scores stands the geometry that explains them: dimensions k, sigma of the noise on each number, the mean
distance of two class means, and the error that averaging leaves in a class mean, sigma sqrt(k / rows of a class).

--choose prints the table from which the dimensions were taken: AG News, CLINC150 and banking77, never Snips.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
from collections import Counter
from pathlib import Path

import numpy as np

from tacit.embeddings.angular import Angular
from tacit.embeddings.base import VectorMechanism
from tacit.embeddings.forward import Forward
from tacit.embeddings.heads import class_numbers, released_head
from tacit.evaluation.scores.classification import classification_scores
from tacit.labels import randomize_labels

Rows = tuple[list[str], list[str]]
SETS = {
    "snips": ("snips/train.tsv", "snips/test.tsv", "tokens", "intent"),
    "agnews": ("agnews/train10k.tsv.gz", "agnews/test.tsv.gz", "text", "label"),
    "clinc150": ("clinc150/train.tsv", "clinc150/test.tsv", "text", "intent"),
    "banking77": ("banking77/train.tsv", "banking77/test.tsv", "text", "intent"),
}
CHOSEN_ON = ("agnews", "clinc150", "banking77")


def rows_of(path: str, text: str, label: str) -> Rows:
    """Texts and labels of a file in the folder of data sets."""
    place = Path(os.environ.get("TACIT_DATA", "../shared/data")) / path
    with gzip.open(place, "rt", encoding="utf-8") if place.suffix == ".gz" else place.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[text] for row in rows], [row[label] for row in rows]


def f1(truth: list[str], predicted: list[str]) -> float:
    """Macro-F1."""
    return float(classification_scores(truth, predicted).macro_f1)


def scores(
    mechanism: VectorMechanism, train: Rows, test: Rows, sigma: float, seed: int, label_epsilon: float | None = None
):
    """Macro-F1 on clean and on noisy test rows of a head that was trained on released vectors."""
    mechanism.seed = seed
    names = tuple(sorted(set(train[1])))
    labels = train[1]
    if label_epsilon is not None:
        labels = randomize_labels(labels, names, label_epsilon, seed=seed).labels
    released = mechanism.embed(train[0]).matrix
    head = released_head(released, class_numbers(labels, names), names, sigma)
    mechanism.seed = seed + 1_000
    clean = head.predict(mechanism.clean_vectors(test[0]))
    noisy = head.predict(mechanism.embed(test[0]).matrix)
    return f1(test[1], clean), f1(test[1], noisy)


def without_noise(mechanism: VectorMechanism, train: Rows, test: Rows) -> float:
    names = tuple(sorted(set(train[1])))
    vectors = mechanism.clean_vectors(train[0]).astype(np.float32)
    head = released_head(vectors, class_numbers(train[1], names), names)
    return f1(test[1], head.predict(mechanism.clean_vectors(test[0])))


def geometry(mechanism: VectorMechanism, train: Rows, sigma: float) -> str:
    """The numbers that explain a score."""
    vectors = mechanism.clean_vectors(train[0])
    names = sorted(set(train[1]))
    places = class_numbers(train[1], names)
    means = np.stack([vectors[places == place].mean(axis=0) for place in range(len(names))])
    distances = np.linalg.norm(means[:, None] - means[None], axis=2)
    between = distances[np.triu_indices(len(names), 1)].mean()
    rows = min(Counter(train[1]).values())
    left = sigma * math.sqrt(vectors.shape[1] / rows)
    return f"k {vectors.shape[1]}, sigma {sigma:.2f}, class means {between:.2f} apart, error of a mean {left:.3f}"


def report(name: str, epsilons: list[float], seeds: int) -> None:
    train_file, test_file, text, label = SETS[name]
    train, test = rows_of(train_file, text, label), rows_of(test_file, text, label)
    known = set(train[1])
    kept = [place for place, each in enumerate(test[1]) if each in known]
    test = [test[0][place] for place in kept], [test[1][place] for place in kept]
    print(f"{name}: {len(train[0]):,} rows, {len(known)} labels, {len(test[0]):,} test rows")
    print(f"  {'mechanism':22} {'epsilon':>8} {'clean test':>11} {'noisy test':>11}   geometry")
    print(f"  {'forward, no noise':22} {'inf':>8} {without_noise(Forward(epsilon=1), train, test):11.3f}")
    for epsilon in epsilons:
        forward = Forward(epsilon=epsilon)
        angular = Angular(epsilon=epsilon / math.pi)
        for title, mechanism, sigma in (("forward", forward, forward.noise_scale), ("angular", angular, 0.0)):
            results = np.array([scores(mechanism, train, test, sigma, seed) for seed in range(seeds)])
            clean, noisy = results.mean(axis=0)
            print(
                f"  {title:22} {epsilon:8g} {clean:11.3f} {noisy:11.3f}   {geometry(mechanism, train, sigma)}",
                flush=True,
            )
    forward = Forward(epsilon=10)
    results = np.array([scores(forward, train, test, forward.noise_scale, seed, 3.0) for seed in range(seeds)])
    clean, noisy = results.mean(axis=0)
    print(f"  {'forward, labels too':22} {'10 + 3':>8} {clean:11.3f} {noisy:11.3f}")
    if name == "snips":
        print("  goal: at least .80 macro-F1 with 'forward' at epsilon 10, clean test")


def choose(seeds: int) -> None:
    """Macro-F1 at epsilon 10 over the number of directions."""
    print("dimensions " + " ".join(f"{name:>10}" for name in CHOSEN_ON))
    for dimensions in (8, 16, 32, 64, 128):
        values = []
        for name in CHOSEN_ON:
            train_file, test_file, text, label = SETS[name]
            train, test = rows_of(train_file, text, label), rows_of(test_file, text, label)
            mechanism = Forward(epsilon=10, dimensions=dimensions)
            each = [scores(mechanism, train, test, mechanism.noise_scale, seed)[0] for seed in range(seeds)]
            values.append(float(np.mean(each)))
        print(f"{dimensions:10d} " + " ".join(f"{value:10.3f}" for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="snips")
    parser.add_argument("--epsilons", default="2,4,10,20")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    options = parser.parse_args()
    if options.choose:
        choose(options.seeds)
        return
    for name in options.sets.split(","):
        report(name, [float(each) for each in options.epsilons.split(",")], options.seeds)


if __name__ == "__main__":
    main()
