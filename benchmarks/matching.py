"""A corpus by matching: what three unrelated learners make of it, beside the private rows themselves.

    python benchmarks/matching.py [--sets snips,agnews] [--epsilon 1] [--seeds 5] [--pool FILE] [--sentences 1]

Every learner is trained on released rows and tested on original test rows (macro-F1): logistic regression on TF-IDF of
words and pairs of words, on vectors of MiniLM, and on the static encoder. The last shares its vectors with the release;
the first shares nothing with it. `worst` is the worst of the three. Data sets are read from the folder of data sets
(`TACIT_DATA`); settings are the defaults of `tacit synthesize`.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import tacit
from tacit.encoders import load_encoder
from tacit.jobs.fields import USUAL_POOLS

SETS = {
    "snips": ("snips/train.tsv", "snips/test.tsv", "tokens", "intent"),
    "agnews": ("agnews/train10k.tsv.gz", "agnews/test.tsv.gz", "text", "label"),
    "sst2": ("sst2/train.tsv.gz", "sst2/test.tsv", "sentence", "label"),
    "imdb": ("imdb-subset/train.tsv.gz", "imdb-subset/test.tsv.gz", "text", "label"),
    "banking77": ("banking77/train.tsv", "banking77/test.tsv", "text", "intent"),
    "atis": ("atis/train.tsv", "atis/test.tsv", "tokens", "intent"),
    "ohsumed": ("textgcn-ohsumed/train.tsv.gz", "textgcn-ohsumed/test.tsv.gz", "text", "label"),
}
Learner = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[str]]


def read(name: str, part: int) -> tuple[list[str], list[str]]:
    """Texts and labels of a part of a data set."""
    path = Path(os.environ.get("TACIT_DATA", "../shared/data")) / SETS[name][part]
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        header = next(lines).rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in lines]
    text, label = (header.index(column) for column in SETS[name][2:])
    return [row[text] for row in rows], [row[label] for row in rows]


def words(texts: Sequence[str], labels: Sequence[str], test: Sequence[str]) -> Sequence[str]:
    """Guesses of a linear model on words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10, max_iter=300)
    )
    guesses: Sequence[str] = model.fit(texts, labels).predict(test)
    return guesses


def vectors(encoder: str) -> Learner:
    """A learner on the vectors of an encoder; vectors of texts are kept, since seeds repeat them."""
    from sklearn.linear_model import LogisticRegression

    loaded = load_encoder(encoder)
    known: dict[str, np.ndarray] = {}

    def encoded(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, loaded.encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    def learner(texts: Sequence[str], labels: Sequence[str], test: Sequence[str]) -> Sequence[str]:
        guesses: Sequence[str] = (
            LogisticRegression(C=10, max_iter=300).fit(encoded(texts), labels).predict(encoded(test))
        )
        return guesses

    return learner


def main() -> None:
    """Print a table: a data set in a row, a learner in a column."""
    from sklearn.metrics import f1_score

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="to go on where an earlier run ended")
    parser.add_argument("--private-rows", type=int, help="use only so many private rows")
    parser.add_argument("--test-rows", type=int, default=2_000, help="most test rows, a fixed sample")
    parser.add_argument("--pool", action="append", default=[], help="a pool beside those that come with Tacit")
    parser.add_argument("--sentences", default="auto", help="of a row; 1 for single sentences whatever the texts")
    parser.add_argument("--learners", default="words,minilm,static")
    parser.add_argument("--no-original", action="store_true", help="leave out learners trained on the private rows")
    options = parser.parse_args()
    learners = {name: words if name == "words" else vectors(name) for name in options.learners.split(",")}
    print(f"{'data':12}{'epsilon':>8}  " + "".join(f"{name:>16}" for name in learners) + f"{'worst':>16}{'seconds':>9}")
    for name in options.sets.split(","):
        (texts, labels), (test, truths) = read(name, 0), read(name, 1)
        if len(test) > options.test_rows:
            chosen = np.random.default_rng(0).permutation(len(test))[: options.test_rows]
            test, truths = [test[place] for place in chosen], [truths[place] for place in chosen]
        if options.private_rows is not None:
            kept = np.random.default_rng(1).permutation(len(texts))[: options.private_rows]
            texts, labels = [texts[place] for place in kept], [labels[place] for place in kept]

        def scores(rows: Sequence[str], classes: Sequence[str], test=test, truths=truths) -> list[float]:  # type: ignore[no-untyped-def]
            return [
                float(f1_score(truths, learner(rows, classes, test), average="macro", zero_division=0))
                for learner in learners.values()
            ]

        if not options.no_original:
            originals = scores(texts, labels)
            print(f"{name:12}{'none':>8}  " + "".join(f"{score:16.3f}" for score in originals), flush=True)
        measured, seconds = [], []
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.perf_counter()
                made = tacit.synthesize(
                    [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)],
                    label_column="label", labels=sorted(set(labels)), epsilon=options.epsilon, delta=len(texts) ** -1.5,
                    sample_seed=seed, pools=[*USUAL_POOLS, *options.pool], sentences=options.sentences,
                    output=Path(folder) / "out.csv",
                )  # fmt: skip
                seconds.append(time.perf_counter() - start)
            each = scores(made.columns["text"], made.columns["label"])
            measured.append([*each, min(each)])
        means, spread = np.mean(measured, axis=0), np.std(measured, axis=0)
        shown = "".join(f"{mean:10.3f} ±{deviation:.3f}" for mean, deviation in zip(means, spread, strict=True))
        print(f"{name:12}{options.epsilon:8g}  {shown}{np.mean(seconds):9.1f}", flush=True)


if __name__ == "__main__":
    main()
