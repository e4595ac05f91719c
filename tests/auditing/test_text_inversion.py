"""Inversion of words: the posterior against the full matrix, both ends of epsilon, and claims that do not fit.

Seeds are fixed. The claim test has a false-alarm rate of at most 1e-9 (Hoeffding's bound); the sampled end of the noise
family is compared with margins of at least five standard errors (below 1e-6).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.auditing.text import inversion
from tacit.auditing.text.inversion import (
    bayes,
    chance_of_at_least,
    corpus_prior,
    frequency_prior,
    invert,
    posterior,
    section,
)
from tacit.auditing.text.pairs import TextPairs
from tacit.catalog import build
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.report import Light
from tacit.vectors import VectorTable
from tests.conftest import small_table

WORDS = 40


def zipf(words: int = WORDS) -> np.ndarray:
    weights = 1.0 / (np.arange(words) + 2.0)
    return weights / weights.sum()


def texts(rows: int = 200, length: int = 12, words: int = WORDS, seed: int = 3) -> list[str]:
    drawn = public_generator(seed).choice(words, size=(rows, length), p=zipf(words))
    return [" ".join(f"w{i}" for i in row) for row in drawn]


def released(name: str, epsilon: float, originals: list[str], **options):
    mechanism = build(name, {"epsilon": epsilon, "vectors": small_table(WORDS, 3), "seed": 1, **options})
    return mechanism, TextPairs(originals, mechanism.rewrite(originals).texts)


@pytest.mark.parametrize(
    ("name", "options"), [("santext", {}), ("tem", {}), ("custext", {"set_size": 5}), ("random", {})]
)
def test_posterior_is_the_maximum_of_the_full_matrix(name: str, options: dict, monkeypatch: pytest.MonkeyPatch):
    mechanism = build(name, {"epsilon": 2.0, "vectors": small_table(WORDS, 3), **options})
    monkeypatch.setattr(bayes, "BLOCK_CELLS", 7 * WORDS)  # several blocks, the last one shorter
    prior = public_generator(5).dirichlet(np.ones(WORDS))
    joint = prior[:, None] * mechanism.laws(np.arange(WORDS))
    posteriors = posterior(mechanism, prior)
    np.testing.assert_array_equal(joint[posteriors.guess, np.arange(WORDS)], joint.max(axis=0))
    np.testing.assert_allclose(posteriors.certainty, joint.max(axis=0) / joint.sum(axis=0))
    np.testing.assert_allclose(posteriors.stays, np.diag(mechanism.laws(np.arange(WORDS))))
    assert posteriors.vulnerability == pytest.approx(joint.max(axis=0).sum())
    assert posteriors.exact


@pytest.mark.parametrize(("name", "options"), [("santext", {}), ("tem", {"beta": 1e-9}), ("custext", {"set_size": 40})])
def test_both_ends_of_epsilon(name: str, options: dict):
    originals = texts()
    mechanism, pairs = released(name, 1e6, originals, **options)
    inverted = invert(pairs, mechanism, zipf())
    assert inverted.bayes.rate == inverted.nearest.rate == 1.0
    assert section(inverted).findings[1].light is Light.RED
    mechanism, pairs = released(name, 1e-6, originals, **options)
    inverted = invert(pairs, mechanism, zipf())
    blind = np.mean([token == "w0" for text in originals for token in text.split()])
    assert inverted.bayes.rate == inverted.bayes.floor == blind
    assert inverted.leakage == pytest.approx(1.0, abs=1e-4)
    assert inverted.nearest.rate < inverted.bayes.rate


def test_noise_mechanisms_are_sampled_at_both_ends():
    originals = texts()
    mechanism, pairs = released("laplace", 1e4, originals)
    inverted = invert(pairs, mechanism, zipf())
    assert not inverted.exact
    assert inverted.bayes.rate == 1.0
    assert math.isnan(inverted.expected_unchanged)
    assert "simulated draws" in section(inverted).text
    mechanism, pairs = released("laplace", 1e-4, originals)
    inverted = invert(pairs, mechanism, zipf())
    assert inverted.bayes.rate < inverted.bayes.floor + 0.05


def test_bayes_beats_the_plain_guess_when_the_text_follows_the_prior():
    mechanism, pairs = released("santext", 1.0, texts(2_000))
    inverted = invert(pairs, mechanism, zipf())
    spread = math.sqrt(0.25 / inverted.tokens)
    assert inverted.bayes.rate > inverted.nearest.rate + 5 * spread
    assert inverted.bayes.rate == pytest.approx(inverted.vulnerability, abs=5 * spread)


def test_classes_and_worst_cases_are_kept_apart():
    mechanism, pairs = released("santext", 6.0, texts())
    inverted = invert(pairs, mechanism, zipf())
    parts = inverted.bayes_by_class
    assert sum(part.cases for part in parts.values()) == inverted.tokens
    mean = sum(part.rate * part.cases for part in parts.values() if part.cases) / inverted.tokens
    assert mean == pytest.approx(inverted.bayes.rate)
    tables = section(inverted).tables
    assert tables[1].private
    assert not tables[0].private
    for row, original, shown, certainty in inverted.worst:
        assert original in pairs.originals[row - 1].split()
        assert shown in pairs.released[row - 1].split()
        assert 0 < certainty <= 1


def test_a_release_with_less_noise_than_claimed_is_refuted():
    originals = texts()
    honest, pairs = released("santext", 1.0, originals)
    claimed = build("santext", {"epsilon": 1.0, "vectors": small_table(WORDS, 3)})
    finding = section(invert(pairs, claimed, zipf())).findings[0]
    assert not finding.refuted
    _, weak = released("santext", 4.0, originals)
    finding = section(invert(weak, claimed, zipf())).findings[0]
    assert finding.refuted
    assert finding.light is Light.RED
    assert honest.epsilon == claimed.epsilon


def test_the_bound_on_unchanged_words_is_a_bound():
    for count, mean, share in ((50, 0.2, 0.4), (400, 0.5, 0.6), (30, 0.1, 1.0)):
        exact = float(binom.sf(math.ceil(share * count) - 1, count, mean))
        assert exact <= chance_of_at_least(share, mean, count) * (1 + 1e-9) < 1
    assert chance_of_at_least(0.3, 0.3, 100) == 1.0
    assert chance_of_at_least(0.1, 0.3, 100) == 1.0


def test_words_that_the_tokenizer_would_cut_stay_whole():
    words = ["inc.", "inc", ".", "&amp;", "firm", "—"]
    vectors = np.arange(12, dtype=np.float32).reshape(6, 2)
    table = VectorTable(words, vectors, name="cut", source="made for a test")
    mechanism = build("santext", {"epsilon": 1e6, "vectors": table})
    pairs = TextPairs(["firm firm", "firm .", "inc firm"], ["inc. —", "inc.", "firm &amp;"])
    aligned = inversion.align(pairs, mechanism)
    assert [words[i] for i in aligned.released] == ["inc.", "—", "inc", ".", "firm", "&amp;"]
    assert aligned.left_out == 0


def test_rows_of_another_length_are_left_out_and_counted():
    mechanism, _ = released("santext", 1.0, ["w1"])
    pairs = TextPairs(["w1 w2 w3", "w4 w5"], ["w1 w2", "w4 w5"])
    inverted = invert(pairs, mechanism, zipf())
    assert inverted.left_out == 1
    assert inverted.tokens == 2
    assert "1 rows were left out" in section(inverted).text
    with pytest.raises(BadInputError, match="as many words"):
        invert(TextPairs(["w1 w2"], ["w1"]), mechanism, zipf())
    with pytest.raises(BadInputError, match="did not make this file"):
        invert(TextPairs(["w1 w2"], ["other words"]), mechanism, zipf())


def test_kept_punctuation_is_guessed_as_it_stands_and_not_held_against_the_mechanism():
    words = ["w0", "w1", ",", "w2"]
    table = VectorTable(words, 9 * np.eye(4, dtype=np.float32), name="marks", source="made for a test")
    mechanism = build("santext", {"epsilon": 1e-6, "vectors": table, "punctuation": "keep", "seed": 2})
    originals = ["w1 , w1 , w2 ,"] * 50
    inverted = invert(
        TextPairs(originals, mechanism.rewrite(originals).texts), mechanism, np.array([0.7, 0.1, 0.1, 0.1])
    )
    assert inverted.bayes.rate == 0.5  # the commas; every word is guessed to be w0
    assert inverted.unchanged < 0.5
    assert inverted.chance_of_unchanged > 1e-9


def test_priors():
    prior = corpus_prior(["a", "b", "c"], ["a a b", "a"])
    np.testing.assert_allclose(prior, np.array([3.5, 1.5, 0.5]) / 5.5)
    with pytest.raises(BadInputError, match="empty"):
        corpus_prior(["a"], ["", " "])
    pytest.importorskip("wordfreq")
    words = ["the", "movie", ",", "zyzzyva", "'s"]
    prior = frequency_prior(words)
    assert prior.sum() == pytest.approx(1.0)
    assert [words[i] for i in np.argsort(-prior)] == ["the", ",", "'s", "movie", "zyzzyva"]
