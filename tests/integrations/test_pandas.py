"""The accessor `.tacit` on real Series."""

from __future__ import annotations

import pytest

import tacit
from tacit.errors import BadInputError, BadParameterError
from tacit.text.tokens import split

pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'tacit-dp[pandas]'")

import tacit.integrations.pandas  # noqa: E402


@pytest.fixture
def texts():
    return pandas.Series(["w1 w2 w3", "", "w4 w5"], index=["a", "b", "c"], name="message")


def test_rewrite_keeps_index_name_and_type(texts, vectors):
    private = texts.tacit.rewrite("santext", epsilon=1, vectors=vectors)
    assert isinstance(private, pandas.Series)
    assert list(private.index) == ["a", "b", "c"]
    assert private.name == "message"
    assert private.dtype == texts.dtype
    assert [len(split(text)) for text in private] == [3, 0, 2]
    assert list(texts) == ["w1 w2 w3", "", "w4 w5"]


def test_release_carries_the_guarantee(texts, vectors):
    release = texts.tacit.release("santext", epsilon=1, vectors=vectors)
    assert release.guarantee.epsilon == 1
    assert any("index" in item for item in release.guarantee.not_covered)
    assert list(release.units) == [3, 0, 2]
    card = release.card()
    assert card.facts.columns == ("message",)
    assert any("longest row here, 3 words" in total["what"] for total in card.to_dict()["totals"])


def test_categories_do_not_carry_the_originals_along(texts, vectors):
    private = texts.astype("category").tacit.rewrite("santext", epsilon=1, vectors=vectors)
    assert not isinstance(private.dtype, pandas.CategoricalDtype)


def test_a_mechanism_with_its_own_parameters(texts, vectors):
    mechanism = tacit.SanText(epsilon=1.0, vectors=vectors)
    assert texts.tacit.release(mechanism).guarantee.epsilon == 1
    with pytest.raises(BadParameterError, match="already"):
        texts.tacit.rewrite(mechanism, epsilon=2)


def test_empty_and_unusable_series(texts, vectors):
    assert texts[:0].tacit.release("santext", epsilon=1, vectors=vectors).card().facts.rows == 0
    with pytest.raises(BadInputError, match="item 1 is a float"):
        pandas.Series(["w1", float("nan")], dtype=object).tacit.rewrite("santext", epsilon=1, vectors=vectors)
    with pytest.raises(BadParameterError, match="Give an epsilon"):
        texts.tacit.rewrite("santext")
