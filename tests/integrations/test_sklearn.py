"""Mechanisms in scikit-learn pipelines, and what a search over parameters costs."""

from __future__ import annotations

from collections import Counter

import pytest

import tacit
from tests.conftest import small_table

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'tacit-dp[audit]'")

from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

TEXTS = [f"w{i} w{i % 7}" for i in range(24)]
LABELS = [i % 2 for i in range(24)]


def pipeline() -> Pipeline:
    return Pipeline(
        [
            ("rewrite", tacit.SanText(epsilon=2.0, vectors=small_table())),
            ("words", TfidfVectorizer()),
            ("classify", LogisticRegression()),
        ]
    )


@pytest.fixture
def draws(monkeypatch) -> Counter[str]:
    """How often noise was drawn for each text."""
    counted: Counter[str] = Counter()
    real = tacit.SanText.rewrite_texts

    def counting(self, texts, source):
        counted.update(texts)
        return real(self, texts, source)

    monkeypatch.setattr(tacit.SanText, "rewrite_texts", counting)
    return counted


def test_fit_draws_once_and_predict_draws_again(draws):
    model = pipeline().fit(TEXTS, LABELS)
    assert set(draws.values()) == {1}
    model.predict(TEXTS)
    assert set(draws.values()) == {2}


def test_a_clone_has_the_parameters_and_its_own_noise():
    first = pipeline()
    second = clone(first)
    assert second["rewrite"].epsilon == 2.0
    assert second["rewrite"] is not first["rewrite"]
    # 48 words among 40: the probability of two equal draws is far below 1e-9.
    assert first["rewrite"].transform(TEXTS) != second["rewrite"].transform(TEXTS)


def test_a_grid_search_draws_for_every_fold_and_candidate(draws):
    """folds x candidates + 1 draws of every text: each of them is a release of its own."""
    search = GridSearchCV(pipeline(), {"classify__C": [0.1, 1.0, 10.0]}, cv=4)
    search.fit(TEXTS, LABELS)
    assert set(draws.values()) == {4 * 3 + 1}


def test_rewriting_first_draws_once_whatever_is_searched(draws):
    private = tacit.SanText(epsilon=2.0, vectors=small_table()).transform(TEXTS)
    search = GridSearchCV(pipeline()[1:], {"classify__C": [0.1, 1.0, 10.0]}, cv=4)
    search.fit(private, LABELS)
    assert set(draws.values()) == {1}


def test_epsilon_can_be_set_through_the_pipeline():
    model = pipeline().set_params(rewrite__epsilon=5.0)
    assert model["rewrite"].guarantee().epsilon == 5.0
