"""The local model: labels covered, no trusted curator; what unrelated learners make of its releases.

    python benchmarks/local.py [--sets snips] [--epsilon 3] [--seeds 5] [--codebooks minilm static] [--pools general]

Every record (text and label) is released by the joint code of the codebook with a pure local epsilon, as
`tacit rewrite --mechanism codebook --randomize LABEL` does it. Two ways to use the release are compared: training on
the released rows as they are, and on the corpus that `tacit decode` makes of them, with its defaults. Learners are
trained on either and tested on original test rows (macro-F1, mean ± standard deviation over seeds): logistic regression
on TF-IDF of words and pairs of words, on TF-IDF of character n-grams, and on MiniLM vectors; `static` is for
information. `worst` is the worst of the first three. A decoded line ends with the epsilon of the shuffled rows.

Data sets are read from the folder of data sets (`TACIT_DATA`); constants were never chosen on Snips. Vectors of MiniLM
are kept in the temporary folder between runs.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from codebook import KeptVectors
from corpus import data_rows
from tacit.account.delta import automatic_delta
from tacit.account.shuffling import blanket_epsilon
from tacit.documents.codebook import Codebook
from tacit.encoders import load_encoder
from tacit.guarantee import Guarantee
from tacit.jobs.decode import pool_features, text_features
from tacit.matching.decoding import CellFeatures, LabelChannel, label_sums
from tacit.matching.decoding_corpus import decoded_corpus
from tacit.matching.label_names import spoken_name
from tacit.matching.pool import load_pool
from tacit.noise.source import Source

SETS = {
    "snips": (("snips/train.tsv",), ("snips/test.tsv",), "tokens", "intent"),
    "clinc150": (("clinc150/train.tsv",), ("clinc150/test.tsv",), "text", "intent"),
    "mr": (("textgcn-mr/train.tsv",), ("textgcn-mr/test.tsv",), "text", "label"),
}
JUDGES = ("words", "characters", "minilm")
Rows = tuple[list[str], list[str]]


def labeled(name: str, part: int) -> Rows:
    """Texts and labels of a part of a data set."""
    files, text, label = SETS[name][part], SETS[name][2], SETS[name][3]
    rows = [row for file in files for row in data_rows(file)]
    return [row[text] for row in rows], [row[label] for row in rows]


class Learners:
    """Guesses of learners that know nothing of the release."""

    def __init__(self, minilm: KeptVectors) -> None:
        self._vectors = {"minilm": minilm, "static": load_encoder("static")}

    def score(self, name: str, train: Rows, test: Rows) -> float:
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import f1_score

        if len(set(train[1])) < 2:
            return 0.0
        seen, asked = self._features(name, train[0], test[0])
        guesses = LogisticRegression(C=10, max_iter=200).fit(seen, train[1]).predict(asked)
        return float(f1_score(test[1], guesses, average="macro", zero_division=0))

    def _features(self, name: str, train: Sequence[str], test: Sequence[str]) -> tuple[object, object]:
        from sklearn.feature_extraction.text import TfidfVectorizer

        if name in self._vectors:
            return self._vectors[name].encode(train), self._vectors[name].encode(test)
        words = {"ngram_range": (1, 2)} if name == "words" else {"analyzer": "char_wb", "ngram_range": (2, 4)}
        made = TfidfVectorizer(sublinear_tf=True, max_features=100_000, **words)
        return made.fit_transform(train), made.transform(test)


def mechanism(codebook: str, epsilon: float, labels: Sequence[str], minilm: KeptVectors) -> Codebook:
    made = Codebook(epsilon=epsilon, codebook=codebook, labels=tuple(labels))
    if codebook == "minilm":
        made.__dict__["sentence_encoder"] = minilm
    return made


def shown(scores: list[list[float]]) -> str:
    means, spread = np.mean(scores, axis=0), np.std(scores, axis=0)
    return "".join(f"{mean:9.3f} ±{deviation:.3f}" for mean, deviation in zip(means, spread, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=sorted(SETS), default=["snips"])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--codebooks", nargs="+", default=["minilm", "static"])
    parser.add_argument("--pools", nargs="+", default=["general"])
    parser.add_argument("--learners", nargs="+", default=[*JUDGES, "static"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    minilm = KeptVectors()
    learners = Learners(minilm)
    pools = [load_pool(name) for name in given.pools]
    print(f"{'':34}" + "".join(f"{name:>16}" for name in [*given.learners, "worst"]))
    for name in given.sets:
        train, test = labeled(name, 0), labeled(name, 1)
        names = sorted(set(train[1]))
        places = np.array([names.index(label) for label in train[1]])

        def scores(rows: Rows, test: Rows = test) -> list[float]:
            each = [learners.score(learner, rows, test) for learner in given.learners]
            judged = [score for learner, score in zip(given.learners, each, strict=True) if learner in JUDGES]
            return [*each, min(judged)]

        print(f"{name + ', original text':34}{shown([scores(train)])}", flush=True)
        for codebook in given.codebooks:
            made = mechanism(codebook, given.epsilon, names, minilm)
            made.prepare()
            cells = CellFeatures.of(made.partition.centers)
            of_pool = pool_features(made, cells, pools)
            of_names = text_features(made, cells, [spoken_name(label) for label in names])
            law = made.two_weights()
            assert law is not None
            delta = automatic_delta(len(train[0]))
            direct, decoded = [], []
            for seed in range(given.seeds):
                drawn, released = made.draw_records(train[0], places, Source.from_test_seed(seed))
                sentences = [made.public.sentences[place] for place in made.partition.chosen[released[:, 0]]]
                direct.append(scores((sentences, [names[place] for place in drawn])))
                channel = LabelChannel.joint(len(names), law)
                sums = label_sums(released[:, 0], drawn, tuple(names), channel, cells, of_names)
                promised: Guarantee = made.guarantee(secure=False)
                corpus = decoded_corpus(sums, pools, of_pool, promised, seed=seed)
                decoded.append(scores((list(corpus.texts), list(corpus.labels))))
            kind = f"{name}, epsilon {given.epsilon:g}, {codebook}"
            shuffled = blanket_epsilon(law, len(train[0]), delta)
            print(f"{kind + ', as released':34}{shown(direct)}")
            print(f"{kind + ', decoded':34}{shown(decoded)}  shuffled {shuffled:.3g} ({delta:.0e})", flush=True)


if __name__ == "__main__":
    main()
