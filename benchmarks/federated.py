"""User-level privacy on real authors: what an author-by-author promise costs, and what correlated noise saves.

Task: the gender (or age group) of the author of a blog post, a balanced question with two answers (blog-authorship,
2,000 authors). Trained on 4 posts of each of 1,600 authors, tested on 5 posts of each of the 400 others. Model: a
linear layer on fixed vectors (means of public word vectors, or MiniLM), scaled by public reviews, so that a run takes
seconds. All posts of an author are protected together: user-level epsilon, delta = 1 / authors^1.5 or less.

Compared: federated averaging without privacy; DP-FedAvg (Poisson sample of authors); DP-FTRL with tree, banded and
buffered noise (authors in a fixed order); and DP-SGD on single posts, whose record-level promise is converted to a
user-level one by group privacy (4 posts each). Same server, same passes over the authors; the learning rate of each
method is fixed in the table below, for all epsilons and seeds.

    python benchmarks/federated.py [--seeds 5] [--epsilons 2 8] [--label age_group] [--vectors minilm]
    python benchmarks/federated.py --errors           only the error of tree, banded and buffered noise, no data needed

Vectors are kept in the temporary folder between runs.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from rich.console import Console
from rich.table import Table

from corpus import data_folder, data_rows
from measure import say
from tacit.account.matrix import Toeplitz, error_of, optimal_banded, optimal_buffered
from tacit.account.tree import best_tree
from tacit.noise.source import public_generator

PIECES = 64
TRAINED_AUTHORS = 1_600
POSTS = 4
COHORT, PASSES = 160, 10.0
BOUND, MOMENTUM = 0.5, 0.9
METHODS = {
    "FedAvg, no privacy": 1.0,
    "DP-FTRL, tree": 0.25,
    "DP-FTRL, banded (16)": 0.25,
    "DP-FTRL, buffered": 0.25,
    "DP-FedAvg": 0.25,
    "DP-SGD on posts, by group privacy": 0.25,
}
"""Learning rate of the server (SGD with momentum) for each method."""


# Data -----------------------------------------------------------------------------------------------------------------


@dataclass
class Posts:
    vectors: np.ndarray
    labels: np.ndarray
    authors: list[str]


def load(label: str, kind: str) -> tuple[Posts, Posts]:
    """Training posts of 1,600 authors, and all posts of the others."""
    found = [row for row in data_rows("blog-authorship/posts.tsv.gz") if row["split"] in ("train", "test")]
    vectors = post_vectors([row["text"] for row in found], kind)
    names = sorted({row["author"] for row in found})
    order = public_generator(5).permutation(len(names))
    trained = {names[i] for i in order[:TRAINED_AUTHORS]}
    classes = sorted({row[label] for row in found})
    labels = np.array([classes.index(row[label]) for row in found])

    def part(places: list[int]) -> Posts:
        return Posts(vectors[places], labels[places], [found[i]["author"] for i in places])

    inside = [i for i, row in enumerate(found) if row["author"] in trained and row["split"] == "train"]
    outside = [i for i, row in enumerate(found) if row["author"] not in trained]
    return part(inside), part(outside)


def post_vectors(texts: list[str], kind: str) -> np.ndarray:
    digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()
    path = Path(tempfile.gettempdir()) / "tacit-benchmarks" / "federated" / f"{kind}-{digest}.npy"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        encode = sentence_vectors if kind == "minilm" else word_means
        say(f"encoding {len(texts):,} posts and 2,500 public reviews, once")
        np.save(path, whitened(encode(texts), encode([row["text"] for row in data_rows("imdb-subset/test.tsv.gz")])))
    return np.load(path)


def whitened(vectors: np.ndarray, public: np.ndarray) -> np.ndarray:
    """Centered and scaled by what *public* texts look like, to length 1 for a typical one of them."""
    values, directions = np.linalg.eigh(np.cov(public.T))
    scaled = (vectors - public.mean(axis=0)) @ directions / np.sqrt(values + 0.05 * values.mean())
    return (scaled / math.sqrt(vectors.shape[1])).astype(np.float32)


def sentence_vectors(texts: list[str]) -> np.ndarray:
    from tacit.documents.encoder import SentenceEncoder

    return SentenceEncoder("minilm", pieces=PIECES).encode(texts)


def word_means(texts: list[str]) -> np.ndarray:
    """The mean of the public vectors (GloVe, 100 dimensions, 20,000 words) of the words of a text."""
    from tacit.text.tokens import split

    folder = data_folder() / "glove-subset"
    table = np.load(folder / "glove-6b-100d.top20k.f16.npy").astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    words = (folder / "glove-6b-100d.top20k.vocab.txt").read_text(encoding="utf-8").split("\n")
    place = {word: i for i, word in enumerate(words) if word}
    means = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
    for row, text in enumerate(texts):
        found = [place[word] for word in split(text.lower()) if word in place]
        if found:
            means[row] = table[found].mean(axis=0)
    return means


# Training -------------------------------------------------------------------------------------------------------------


def plan_of(method: str, epsilon: float, users: int, posts: int) -> Any:
    from tacit.account.delta import automatic_delta
    from tacit.guarantee import Unit, group_delta
    from tacit.training.federated import VisitPlan
    from tacit.training.plan import TrainingPlan

    if method.startswith("FedAvg"):
        return TrainingPlan.without_privacy(records=users, batch=COHORT, epochs=PASSES)
    if method == "DP-FedAvg":
        return TrainingPlan.calibrated(epsilon=epsilon, records=users, batch=COHORT, epochs=PASSES, unit=Unit.USER)
    if method.startswith("DP-SGD"):
        # 4 posts change together: (4 e, delta (1 + e^e + ...)) must stay within the user-level promise.
        each = epsilon / POSTS
        delta = automatic_delta(users) / group_delta(each, 1e-9, POSTS) * 1e-9
        return TrainingPlan.calibrated(epsilon=each, records=posts, batch=COHORT * POSTS, epochs=PASSES, delta=delta)
    noise = method.split(", ")[1].split(" ")[0]
    return VisitPlan.ordered(
        epsilon=epsilon, users=users, cohort=COHORT, epochs=PASSES, noise=noise, bands=16, momentum=MOMENTUM
    )


def accuracy(method: str, plan: Any, train: Posts, test: Posts, seed: int) -> float:
    """Train with this plan, and score.

    The arithmetic of `tacit federate` for one local step on all rows of a user, flat clipping and a server with
    momentum, all users of a round at once; users, noise and multiplier come from the plan.
    """
    from tacit.noise.source import StreamKey
    from tacit.training.correlated_noise import noise_stream

    rows = 1 if method.startswith("DP-SGD") else POSTS
    order = np.argsort(train.authors, kind="stable")
    x = _with_constant(train.vectors)[order].reshape(-1, rows, train.vectors.shape[1] + 1)
    y = train.labels[order].reshape(-1, rows)
    key = StreamKey.from_test_seed(seed)
    weights = np.zeros(x.shape[2])
    noise = noise_stream(getattr(plan, "factorization", Toeplitz()), plan.steps, len(weights), key, b"updates")
    velocity = np.zeros_like(weights)
    for step in range(plan.steps):
        visited = plan.sample(step, key)
        guesses = 1.0 / (1.0 + np.exp(-(x[visited] @ weights)))
        updates = ((y[visited] - guesses)[:, :, None] * x[visited]).mean(axis=1)
        if plan.private:
            lengths = np.linalg.norm(updates, axis=1, keepdims=True)
            updates *= np.minimum(1.0, BOUND / np.maximum(lengths, 1e-30))
            total = updates.sum(axis=0) + plan.multiplier * BOUND * noise.at(step)
            mean = total / plan.batch
        else:
            mean = updates.sum(axis=0) / max(1, len(visited))
        velocity = MOMENTUM * velocity + mean
        weights += METHODS[method] * (1.0 - step / plan.steps) * velocity
    return float(((_with_constant(test.vectors) @ weights > 0) == (test.labels == 1)).mean())


def _with_constant(vectors: np.ndarray) -> np.ndarray:
    return np.hstack([vectors, np.ones((len(vectors), 1), dtype=vectors.dtype)])


# What is printed ------------------------------------------------------------------------------------------------------


def print_errors(console: Console) -> None:
    """Root mean square noise on the running sums at equal privacy, relative to the tree."""
    table = Table(title="noise on the running sums at equal privacy (error; ratio to the tree)")
    for name in ("rounds", "visits", "independent", "tree", "banded (16)", "banded (64)", "buffered (3)"):
        table.add_column(name, justify="right")
    for rounds, separation in ((100, 100), (500, 500), (2000, 2000), (100, 10), (500, 50), (2000, 200)):
        errors = [
            error_of(factor, rounds, separation)
            for factor in (
                Toeplitz(),
                best_tree(rounds, separation),
                optimal_banded(rounds, separation, 16),
                optimal_banded(rounds, separation, 64),
                optimal_buffered(rounds, separation, 3),
            )
        ]
        cells = [f"{error:.2f} ({error / errors[1]:.2f})" for error in errors]
        table.add_row(f"{rounds:,}", str(math.ceil(rounds / separation)), *cells)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[2.0, 8.0])
    parser.add_argument("--label", choices=("gender", "age_group"), default="gender")
    parser.add_argument("--vectors", choices=("words", "minilm"), default="words")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--errors", action="store_true", help="only the errors of the noise")
    given = parser.parse_args()
    console = Console(highlight=False)
    print_errors(console)
    if given.errors:
        return
    train, test = load(given.label, given.vectors)
    started = time.process_time()
    table = Table(title=f"accuracy on posts of unseen authors, {given.label}, mean of {given.seeds} seeds (chance 0.5)")
    table.add_column("method")
    for epsilon in given.epsilons:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for method in given.methods:
        cells = []
        for epsilon in [math.inf] if method.startswith("FedAvg") else given.epsilons:
            plan = plan_of(method, epsilon, TRAINED_AUTHORS, len(train.labels))
            scores = [accuracy(method, plan, train, test, seed) for seed in range(given.seeds)]
            cells.append(f"{np.mean(scores):.3f} ({np.std(scores):.3f})")
            say(f"{method}, epsilon {epsilon:g}: {cells[-1]}, {time.process_time() - started:.0f} CPU seconds so far")
        table.add_row(method, *(cells * len(given.epsilons) if method.startswith("FedAvg") else cells))
    console.print(table)
    console.print(
        f"{len(train.labels):,} posts of {TRAINED_AUTHORS:,} authors, {len(test.labels):,} posts of others; "
        f"cohort {COHORT}, {PASSES:g} passes; {time.process_time() - started:.0f} CPU seconds"
    )


if __name__ == "__main__":
    main()
