"""Topics of private texts against the same without noise: purity by labels, words, intervals, seconds.

    python benchmarks/topics.py [DATA.tsv ...] [--runs 3]

A file has the columns intent (or label) and text, raw tsv. The number of cells, the words that count, and how cells are
joined were chosen on CLINC150 and AG News. The number of topics was changed once after banking77 had been looked at
(docs/topics.md).

purity    the share of texts whose label is the most frequent one of their topic
noiseless the same pipeline with exact counts, for the number of topics that the noisy run chose (and for 100 topics)
k-means   as many centers of the texts themselves, without any privacy: what no public cell can know
overlap   of the ten first words of each topic, the share that exact counts give as well; mean over topics by size
covered   how many of the 95 % intervals hold the true number of texts
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np

from corpus import data_folder
from tacit.jobs.topics import TopicsConfig
from tacit.jobs.topics.lda import PART, PASSES, WORDS
from tacit.jobs.topics.words import public_words, telling_words
from tacit.matching.labels import nearest_centers, spherical_centers
from tacit.matching.topics.cells import load_cells, topic_vectors
from tacit.matching.topics.merging import merged, noise_reach, usual_topics
from tacit.matching.topics.naming import ordered_words
from tacit.matching.whole_numbers import whole_vectors
from tacit.matching.words import words_of
from tacit.noise.source import Source, StreamKey, public_generator
from tacit.training.plan import TrainingPlan
from tacit.training.topics.counts import UnitCounts
from tacit.training.topics.lda import Bags, fitted_lda
from tacit.training.topics.release import TopicTerms, topic_noise

USUAL = [data_folder() / "clinc150" / "train.tsv", data_folder() / "banking77" / "train.tsv"]
TOP = 10


def purity(topics: np.ndarray, labels: np.ndarray) -> float:
    _, label_places = np.unique(labels, return_inverse=True)
    table = np.zeros((topics.max() + 1, label_places.max() + 1), dtype=np.int64)
    np.add.at(table, (topics, label_places), 1)
    return float(table.max(axis=1).sum() / len(topics))


def rows_of(path: Path) -> tuple[list[str], np.ndarray]:
    rows = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return [text for _, text in rows], np.array([label for label, _ in rows])


def exact_words(words: dict[tuple[int, str], int], topics: np.ndarray, count: int) -> list[dict[str, float]]:
    sums: list[dict[str, float]] = [{} for _ in range(count)]
    for (cell, word), steps in words.items():
        of_topic = sums[topics[cell]]
        of_topic[word] = of_topic.get(word, 0.0) + steps / 2**20
    return sums


def measure(path: Path, runs: int) -> None:
    texts, labels = rows_of(path)
    cells = load_cells()
    start = time.perf_counter()
    places = cells.places(texts)
    encoding = time.perf_counter() - start
    whole = whole_vectors(topic_vectors(texts))[public_generator(0).permutation(len(texts))]
    shuffled = labels[public_generator(0).permutation(len(texts))]
    config = TopicsConfig(data=["x"], epsilon=1)
    start = time.perf_counter()
    counts = UnitCounts(len(cells), config.words_that_count)
    counts.add(places, [telling_words(text, config.words_that_count) for text in texts])
    exact = counts.finish()
    counting = time.perf_counter() - start
    kept = places >= 0
    true = exact.cells / 2**20
    print(f"\n{path.parent.name}: {len(texts):,} texts, {len(set(labels.tolist()))} labels, encoding {encoding:.1f} s")
    print("epsilon  topics  purity  noiseless  ratio  noiseless(100)  k-means  overlap  words/topic  covered  seconds")
    for epsilon in (0.5, 1.0, 3.0):
        results = []
        for run in range(runs):
            start = time.perf_counter()
            source = Source.from_test_seed(run)
            noise = topic_noise(
                TopicTerms(epsilon, None, config.words_that_count), len(cells), exact.units, secure=True
            )
            noisy = noise.noisy_cells(exact, source)
            count = usual_topics(noisy, noise.threshold)
            topics = merged(cells.directions, noisy, noise.scale, count)
            shown = noise.shown_words(exact, topics, count, source)
            private = ordered_words(shown, np.bincount(topics, weights=noisy, minlength=count))
            seconds = counting + time.perf_counter() - start
            # Without noise: no cell is hidden by it, and the scale of the noise is that of a single text.
            plain = merged(cells.directions, true, 0.25, count)
            hundred = merged(cells.directions, true, 0.25, 100)
            totals = np.bincount(topics, weights=true, minlength=count)
            without = ordered_words(exact_words(exact.words, topics, count), totals)
            overlap = [len(set(a[:TOP]) & set(b[:TOP])) / TOP for a, b in zip(private, without, strict=True)]
            reach = np.array([noise_reach(int(size), noise.scale) for size in np.bincount(topics, minlength=count)])
            noisy_totals = np.bincount(topics, weights=noisy, minlength=count)
            results.append(
                [
                    count,
                    purity(topics[places[kept]], labels[kept]),
                    purity(plain[places[kept]], labels[kept]),
                    purity(hundred[places[kept]], labels[kept]),
                    purity(nearest_centers(whole, spherical_centers(whole, count)), shuffled),
                    float(np.average(overlap, weights=totals)),
                    float(np.mean([len(words) for words in private])),
                    float((np.abs(noisy_totals - totals) <= reach).mean()),
                    seconds,
                ]
            )
        count, private_purity, plain_purity, of_hundred, k_means, overlap_mean, words, covered, seconds = np.mean(
            results, axis=0
        )
        print(
            f"{epsilon:7}  {count:6.0f}  {private_purity:6.3f}  {plain_purity:9.3f}  "
            f"{private_purity / plain_purity:5.3f}  {of_hundred:14.3f}  {k_means:7.3f}  "
            f"{overlap_mean:7.3f}  {words:11.1f}  {covered:7.3f}  {seconds:7.1f}",
            flush=True,
        )


def measure_lda(path: Path, topics: int = 20) -> None:
    """Purity of topics by noisy latent Dirichlet allocation against the same without noise."""
    texts, labels = rows_of(path)
    known = public_words(WORDS)
    bags = Bags.of([[known[word] for word in words_of(text) if word in known] for text in texts])
    kept = np.diff(bags.starts) > 0
    sizes = {"records": len(bags), "batch": len(bags) // PART, "epochs": PASSES}
    print(f"\n{path.parent.name}, lda: {topics} topics; texts with a word of the public list: {kept.mean():.0%}")
    for epsilon in (math.inf, 3.0, 1.0, 0.5):
        start = time.perf_counter()
        private = epsilon < math.inf
        plan = TrainingPlan.calibrated(epsilon=epsilon, **sizes) if private else TrainingPlan.without_privacy(**sizes)
        fitted = fitted_lda(bags, WORDS, topics, plan, StreamKey.from_test_seed(0))
        score = purity(fitted.membership(bags).argmax(axis=1)[kept], labels[kept])
        print(f"epsilon {epsilon:4}: purity {score:.3f}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", type=Path, default=USUAL)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    for data in arguments.data:
        measure(data, arguments.runs)
        measure_lda(data)
