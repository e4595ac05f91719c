"""Mechanisms in scikit-learn pipelines, and how many draws a grid search takes.

    python examples/sklearn_pipeline.py

Trains a classifier of requests on original and on rewritten text, tests it on original text, and then counts how often
noise is drawn for a training text by a search over the whole pipeline, and by one over what comes after rewriting.
"""

from __future__ import annotations

from typing import Any

from assistant_requests import requests
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

import tacit

EPSILONS = (2.0, 4.0, 6.0)
CANDIDATES = {"logisticregression__C": [0.1, 1.0, 10.0]}


class CountingSanText(tacit.SanText):
    """SanText that counts for how many texts it has drawn noise."""

    drawn = 0

    def rewrite_texts(self, texts: Any, source: Any) -> Any:
        CountingSanText.drawn += len(texts)
        return super().rewrite_texts(texts, source)


def classifier() -> Any:
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))


def main() -> None:
    rows = requests()
    texts, labels = [row["text"] for row in rows], [row["intent"] for row in rows]
    train, test, train_labels, test_labels = train_test_split(
        texts, labels, test_size=0.2, stratify=labels, random_state=0
    )
    print(f"{len(train)} training texts, {len(test)} test texts, accuracy on original test text")
    print(f"  original text        {classifier().fit(train, train_labels).score(test, test_labels):.3f}")
    for epsilon in EPSILONS:
        release = tacit.SanText(epsilon=epsilon).rewrite(train)
        score = classifier().fit(release.texts, train_labels).score(test, test_labels)
        longest = release.for_documents().exponent(release.guarantee.metric.typical * max(release.units))
        print(f"  SanText, epsilon {epsilon:<4g}{score:.3f}   (longest text: e^{longest:,.0f} at typical distances)")

    print("\nDraws for each training text in a search over 3 candidates in 5 folds")
    few, few_labels = train[::4], train_labels[::4]
    whole = make_pipeline(CountingSanText(epsilon=4.0), *[step for _, step in classifier().steps])
    GridSearchCV(whole, CANDIDATES, cv=5).fit(few, few_labels)
    print(f"  the pipeline with the mechanism   {CountingSanText.drawn / len(few):g}")
    CountingSanText.drawn = 0
    private = CountingSanText(epsilon=4.0).transform(few)
    GridSearchCV(classifier(), CANDIDATES, cv=5).fit(private, few_labels)
    print(f"  rewritten first                   {CountingSanText.drawn / len(few):g}")


if __name__ == "__main__":
    main()
