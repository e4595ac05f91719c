"""Private Evolution beside matching: the same private rows, public sentences, encoder and epsilon, in one run.

    python benchmarks/private_evolution.py [--sets snips,sst2] [--epsilon 1] [--seeds 3]
    python benchmarks/private_evolution.py --variations smollm2 --sets snips --seeds 1

After Xie et al. 2024 (Aug-PE, algorithm 1). Every label has a population of public sentences. In each round every
private row votes for the nearest candidate of its label (Euclidean, in the vectors of the encoder); the votes get
normal noise, and candidates are drawn in proportion to what is left above 0. The next candidates are the drawn ones and
`--offspring` variations of each: neighbors among the public sentences (`--variations pool`, a pool stands for the
language model that would have written it), or what a language model writes like them (`--variations smollm2`). The
released rows are the candidates of the last vote, drawn by it.

Privacy: one row changes one number of one histogram by 1 in every round, so T rounds with noise of deviation s are one
normal mechanism of sensitivity sqrt(T): s = sqrt(T) s(epsilon, delta), with the exact s of one release. Labels and
their proportions are covered: candidates of a label are drawn in numbers that its noisy votes decide.
The noise is that of numpy here: this program measures utility, and releases nothing.

Printed: macro-F1 of the three learners of benchmarks/matching.py for Private Evolution and for `tacit synthesize`, and
the CPU seconds of each. Settings of the baseline (population, rounds, offspring) were chosen for it on TREC questions
and 30 intents of CLINC150, not on the sets that are printed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score

import tacit
from matching import Learner, read, vectors, words
from tacit.arrays import Floats, Floats32, Ids
from tacit.jobs.fields import USUAL_POOLS
from tacit.matching.features import default_map
from tacit.matching.pool import load_pool
from tacit.noise.gaussian import analytic_gaussian_sigma

NEIGHBORS = 30
BLOCK = 2_000
EXAMPLES, PATIENCE = 6, 20
Rows = tuple[list[str], list[str]]
Variations = Callable[[list[str], str, np.random.Generator], list[str]]


class PublicSentences:
    """The sentences of the usual pools with their vectors."""

    def __init__(self) -> None:
        self.map = default_map()
        self.sentences = [sentence for name in USUAL_POOLS for sentence in load_pool(name).sentences]
        self.places = {sentence: place for place, sentence in enumerate(self.sentences)}
        self.vectors = self.encoded(self.sentences)

    def encoded(self, texts: Sequence[str]) -> Floats32:
        blocks = [texts[start : start + 20_000] for start in range(0, len(texts), 20_000)]
        return np.concatenate([self.map.features(block).dense_values() for block in blocks])

    def neighbors(self, texts: list[str], _label: str, generator: np.random.Generator) -> list[str]:
        """For each text, one of the public sentences nearest to it."""
        varied: list[str] = []
        for start in range(0, len(texts), BLOCK):
            block = self.vectors[[self.places[text] for text in texts[start : start + BLOCK]]]
            scores = block @ self.vectors.T
            near = np.argpartition(-scores, NEIGHBORS, axis=1)[:, :NEIGHBORS]
            picked = near[np.arange(len(near)), generator.integers(NEIGHBORS, size=len(near))]
            varied += [self.sentences[place] for place in picked]
        return varied


def written_variations(texts: list[str], label: str, generator: np.random.Generator) -> list[str]:
    """For each text, a sentence that SmolLM2 writes like some of them; the text itself where it has too few ideas."""
    from tacit.documents.language_models.writing import PromptedWriter

    writer = PromptedWriter.of("smollm2")
    varied: list[str] = []
    idle = 0
    while len(varied) < len(texts) and idle < PATIENCE:
        examples = [texts[place] for place in generator.choice(len(texts), min(EXAMPLES, len(texts)), replace=False)]
        new = writer.like(examples, label, int(generator.integers(1 << 31)))
        varied += new
        idle = 0 if new else idle + 1
    return [*varied, *texts][: len(texts)]


def nearest(private: Floats32, candidates: Floats32) -> Ids:
    """For each private row, the place of the nearest candidate."""
    squares = (candidates**2).sum(axis=1)
    blocks = [private[start : start + BLOCK] for start in range(0, len(private), BLOCK)]
    return np.concatenate([(squares - 2 * block @ candidates.T).argmin(axis=1) for block in blocks])


def noisy_votes(private: Floats32, candidates: Floats32, deviation: float, generator: np.random.Generator) -> Floats:
    """The votes of private rows for candidates, with noise, not below 0."""
    votes = np.bincount(nearest(private, candidates), minlength=len(candidates)).astype(np.float64)
    return np.maximum(votes + generator.normal(0.0, deviation, len(candidates)), 0.0)


def drawn_by_votes(candidates: list[str], votes: Floats, rows: int, generator: np.random.Generator) -> list[str]:
    """Candidates in proportion to their votes, or evenly if nothing is left of them."""
    law = votes / votes.sum() if votes.any() else None
    return [candidates[place] for place in generator.choice(len(candidates), rows, p=law)]


def private_evolution(
    private: Rows, public: PublicSentences, vary: Variations, options: argparse.Namespace, seed: int
) -> Rows:
    """Released rows by Private Evolution."""
    generator = np.random.default_rng(seed)
    texts, labels = private
    features, classes = public.encoded(texts), np.array(labels)
    deviation = analytic_gaussian_sigma(options.epsilon, len(texts) ** -1.5, 1.0) * options.rounds**0.5
    names = sorted(set(labels))
    size = options.population
    first = size * (1 + options.offspring)
    candidates = {
        name: [public.sentences[place] for place in generator.choice(len(public.sentences), first, replace=False)]
        for name in names
    }
    drawn: dict[str, list[str]] = {}
    for number in range(options.rounds):
        votes = {
            name: noisy_votes(features[classes == name], public.encoded(candidates[name]), deviation, generator)
            for name in names
        }
        total = sum(float(each.sum()) for each in votes.values())
        last = number + 1 == options.rounds
        for name in names:
            in_proportion = last and total > 0
            rows = round(size * len(names) * float(votes[name].sum()) / total) if in_proportion else size
            drawn[name] = drawn_by_votes(candidates[name], votes[name], rows, generator)
            if not last:
                offspring = (vary(drawn[name], name, generator) for _ in range(options.offspring))
                candidates[name] = list(dict.fromkeys(chain(drawn[name], *offspring)))
    return [text for name in names for text in drawn[name]], [name for name in names for _ in drawn[name]]


def matching(private: Rows, epsilon: float, seed: int) -> Rows:
    """Released rows by `tacit synthesize` with its defaults."""
    texts, labels = private
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = tacit.synthesize(
            [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)],
            label_column="label", labels=sorted(set(labels)), epsilon=epsilon, delta=len(texts) ** -1.5,
            sample_seed=seed, output=Path(folder) / "out.csv",
        )  # fmt: skip
    return list(made.columns["text"]), list(made.columns["label"])


def main() -> None:
    """Print a table: a way in a row, a learner in a column."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="snips,agnews,sst2")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--population", type=int, default=50, help="rows of a label")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--offspring", type=int, default=3, help="variations of each drawn candidate")
    parser.add_argument("--variations", choices=["pool", "smollm2"], default="pool")
    parser.add_argument("--learners", default="words,minilm,static")
    parser.add_argument("--test-rows", type=int, default=2_000)
    parser.add_argument("--only", choices=["evolution", "matching"])
    options = parser.parse_args()
    learners: dict[str, Learner] = {
        name: words if name == "words" else vectors(name) for name in options.learners.split(",")
    }
    public = PublicSentences()
    vary = public.neighbors if options.variations == "pool" else written_variations
    ways: dict[str, Callable[[Rows, int], Rows]] = {
        "evolution": lambda private, seed: private_evolution(private, public, vary, options, seed),
        "matching": lambda private, seed: matching(private, options.epsilon, seed),
    }
    print(f"{'data':12}{'way':12}" + "".join(f"{name:>9}" for name in learners) + f"{'worst':>9}{'CPU s':>9}")
    for name in options.sets.split(","):
        private, (test, truths) = read(name, 0), read(name, 1)
        if len(test) > options.test_rows:
            chosen = np.random.default_rng(0).permutation(len(test))[: options.test_rows]
            test, truths = [test[place] for place in chosen], [truths[place] for place in chosen]
        for way, released in ways.items():
            if options.only not in (None, way):
                continue
            scores, seconds = [], []
            for seed in range(options.seeds):
                start = time.process_time()
                rows, labels = released(private, seed)
                seconds.append(time.process_time() - start)
                each = [
                    float(f1_score(truths, learner(rows, labels, test), average="macro", zero_division=0))
                    for learner in learners.values()
                ]
                scores.append([*each, min(each)])
            shown = "".join(f"{score:9.3f}" for score in np.mean(scores, axis=0))
            print(f"{name:12}{way:12}{shown}{np.mean(seconds):9.1f}", flush=True)


if __name__ == "__main__":
    main()
