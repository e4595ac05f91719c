"""Release a corpus in place of private rows, and see what it is good for: `python examples/share_corpus.py [FOLDER]`.

4,000 requests to an assistant (Snips NLU benchmark, CC0) are the private file. Three learners are trained on the
private rows and on the released ones, and tested on 700 other private rows: on words, on runs of four letters, which
share nothing with the release, and on vectors of the static encoder, by which the release was made. Needs a plain
installation, and half a minute.
"""

from __future__ import annotations

import csv
import itertools
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import tacit
from tacit.encoders import load_encoder
from tacit.matching.pool import load_pool

HERE = Path(__file__).parent
EPSILON = 1.0
COLUMNS = 1 << 15
SHOWN = 5
"""Released rows that are shown of each label, as they come."""
Rows = tuple[list[str], list[str]]


def read(path: Path) -> Rows:
    """Texts and their labels."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["intent"] for row in rows]


def counted(pieces: Callable[[str], list[str]]) -> Callable[[Sequence[str]], csr_matrix]:
    """Texts as counts of their pieces, hashed into columns, each row of length 1."""

    def features(texts: Sequence[str]) -> csr_matrix:
        places = [[zlib.crc32(piece.encode()) % COLUMNS for piece in pieces(text.lower())] for text in texts]
        rows = np.repeat(np.arange(len(texts)), [len(each) for each in places])
        columns = np.array([place for each in places for place in each], dtype=np.int64)
        matrix = csr_matrix((np.ones(len(columns)), (rows, columns)), shape=(len(texts), COLUMNS))
        matrix.data = 1 + np.log(matrix.data)
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
        return csr_matrix(matrix.multiply(1 / np.maximum(lengths, 1e-9)[:, None]))

    return features


def words(text: str) -> list[str]:
    """Words and pairs of neighbors."""
    single = re.findall(r"\w+", text)
    return [*single, *(f"{first} {second}" for first, second in itertools.pairwise(single))]


def letters(text: str) -> list[str]:
    """All runs of four letters."""
    return [text[start : start + 4] for start in range(max(1, len(text) - 3))]


LEARNERS = {
    "words": counted(words),
    "letters": counted(letters),
    "vectors": lambda texts: csr_matrix(load_encoder("static").encode(texts)),
}


def guesses(features: Callable[[Sequence[str]], csr_matrix], train: Rows, test: Sequence[str]) -> list[str]:
    """Labels of test texts by logistic regression on rows of a corpus."""
    names = sorted(set(train[1]))
    inputs, targets = features(train[0]), np.array([names.index(label) for label in train[1]])
    truth = csr_matrix((np.ones(len(targets)), (np.arange(len(targets)), targets)), shape=(len(targets), len(names)))

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, len(names))
        scores = inputs @ weights
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        value = -np.log(shares[np.arange(len(targets)), targets]).sum() + 0.05 * (weights**2).sum()
        return float(value), np.asarray(inputs.T @ (shares - truth) + 0.1 * weights).ravel()

    start = np.zeros(inputs.shape[1] * len(names))
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 40}).x.reshape(-1, len(names))
    return [names[place] for place in (features(test) @ weights).argmax(axis=1)]


def macro_f1(truths: Sequence[str], answers: Sequence[str]) -> float:
    """The mean over labels of the harmonic mean of precision and recall."""
    scores = []
    for label in sorted(set(truths)):
        right = sum(truth == answer == label for truth, answer in zip(truths, answers, strict=True))
        scores.append(2 * right / max(1, truths.count(label) + answers.count(label)))
    return float(np.mean(scores))


def main() -> None:
    """Release the corpus, show it, and score it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    private, test = read(HERE / "requests.csv"), read(HERE / "requests_test.csv")
    start = time.perf_counter()
    made = tacit.synthesize(
        HERE / "requests.csv", column="text", label_column="intent", labels=sorted(set(test[1])), epsilon=EPSILON,
        output=folder / "released.csv", force=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    released = (list(made.columns["text"]), list(made.columns["intent"]))

    print(f"{len(private[0]):,} private requests -> {len(made):,} rows that may be shared, in {seconds:.0f} s\n")
    for label in sorted(set(released[1])):
        texts = [text for text, other in zip(*released, strict=True) if other == label]
        print(label, *list(dict.fromkeys(texts))[:SHOWN], sep="\n    ")

    print("\nmacro-F1 on 700 other private requests, for a learner trained on")
    print(f"{'':12}{'private rows':>14}{'released rows':>15}")
    worst = 1.0
    for name, features in LEARNERS.items():
        best, kept = (macro_f1(test[1], guesses(features, rows, test[0])) for rows in (private, released))
        worst = min(worst, kept)
        print(f"{name:12}{best:14.3f}{kept:15.3f}")
    print(f"{'the worst':26}{worst:15.3f}\n")
    public = set(load_pool("general").sentences)
    print(f"sentences of the release that are not public ones: {len(set(released[0]) - public)}")
    promised = made.guarantee
    print(f"promise: epsilon {promised.epsilon:g}, delta {promised.delta:g} for one request, its text and its label")
    print(f"corpus, card, attribution and sketch: {folder}")


if __name__ == "__main__":
    main()
