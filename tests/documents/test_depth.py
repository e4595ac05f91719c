"""Sentence depth: the exact law on small domains, the published bound reached, wrong variants refuted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.documents.depth import SentenceDepth, depth_scores, depth_weights, sentences_of
from tacit.guarantee import Adjacency, Unit
from tacit.noise.choice import probabilities, rounding_slack
from tacit.noise.source import new_source

EPSILON = 2.0
SUBJECTS = ("The weather", "My sister", "A bank", "The train", "Our cat", "The law", "Music", "This recipe", "War")
ENDS = ("changed", "left early", "asked for money", "was late", "sleeps", "is old", "helps me", "needs salt", "is over")
LONG = " ".join(f"{subject} {end}." for subject, end in zip(SUBJECTS, ENDS, strict=True))


def law(document, candidates, epsilon=EPSILON):
    """The exact law of a document given by its heights (sentences, directions)."""
    return probabilities(depth_weights(depth_scores(np.array(document), candidates), epsilon))[0]


def worst_exchange(sentences, candidates, k, *, score=None, epsilon=EPSILON):
    """The largest loss over all documents of k sentences (as sets: order does not matter) and all exchanges of one."""
    worst = 0.0
    laws = {}

    def of(document):
        key = tuple(sorted(document))
        if key not in laws:
            heights = np.array([sentences[each] for each in key])
            weights = depth_weights((score or depth_scores)(heights, candidates), epsilon)
            laws[key] = np.log(probabilities(weights)[0])
        return laws[key]

    for rest in itertools.combinations_with_replacement(range(len(sentences)), k - 1):
        for first, second in itertools.combinations(range(len(sentences)), 2):
            loss = np.abs(of((*rest, first)) - of((*rest, second))).max()
            worst = max(worst, float(loss))
    return worst


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize(("m", "p"), [(2, 1), (6, 1), (4, 2), (6, 3)])
def test_exchanging_a_sentence_costs_at_most_epsilon(k, m, p):
    candidates = np.random.default_rng(m * 10 + p).integers(-3, 4, size=(m, p))
    heights = (-100, 0, 100) if p < 3 else (-100, 100)
    sentences = [np.array(each) for each in itertools.product(heights, repeat=p)]  # extreme vectors among them
    assert worst_exchange(sentences, candidates, k) <= EPSILON + rounding_slack(m)


def test_nine_tenths_of_epsilon_are_reached():
    """Many candidates that move one way and one that moves the other: the bound is no gift."""
    candidates = np.array([[-1]] + [[1]] * 5)
    sentences = [np.array([height]) for height in (-100, 0, 100)]
    few = worst_exchange(sentences, candidates, 4)
    assert 0.5 * EPSILON < few <= EPSILON + rounding_slack(6)
    many = np.array([[-1]] + [[1]] * 400)
    assert worst_exchange(sentences, many, 4) >= 0.9 * EPSILON


def test_wrong_variants_are_refuted():
    candidates = np.array([[-1, 0]] + [[1, 2]] * 400)
    sentences = [np.array(each) for each in itertools.product((-100, 0, 100), repeat=2)]

    def summed(heights, candidate_heights):
        """The sum over directions in place of the maximum: each direction adds its own change."""
        counts = (heights[:, None, :] >= candidate_heights[None, :, :]).sum(axis=0)
        return -np.abs(counts - len(heights) / 2).sum(axis=1)

    def doubled(heights, candidate_heights):
        """exp(epsilon u), the factor 1/2 forgotten."""
        return 2 * depth_scores(heights, candidate_heights)

    for wrong in (summed, doubled):
        assert worst_exchange(sentences, candidates, 4, score=wrong) > 1.2 * EPSILON
    assert worst_exchange(sentences, candidates, 4) <= EPSILON + rounding_slack(401)


def test_scores_are_those_of_the_definition():
    generator = np.random.default_rng(3)
    heights, candidates = generator.integers(-5, 6, (7, 4)), generator.integers(-5, 6, (9, 4))
    counts = (heights[:, None, :] >= candidates[None, :, :]).sum(axis=0)
    assert (depth_scores(heights, candidates) == -np.abs(counts - 3.5).max(axis=1)).all()


def test_a_document_of_one_sentence_says_nothing_and_many_say_something():
    mechanism = SentenceDepth(epsilon=10, candidates=64, directions=4)
    alone = mechanism.law("It is late.")
    assert np.ptp(alone) == 0.0
    assert np.ptp(mechanism.law(LONG)) > 0
    assert (mechanism.law("") == alone).all()


def test_the_release_is_a_public_sentence_and_the_card_counts_sentences():
    mechanism = SentenceDepth(epsilon=5, candidates=64, directions=4)
    release = mechanism.rewrite([LONG, "", "Short. But two."])
    chosen = mechanism.public.level(64).chosen
    known = {mechanism.public.sentences[place] for place in chosen.tolist()}
    assert set(release.texts) <= known
    assert release.units == [9, 1, 2]
    promised = release.guarantee
    assert (promised.unit, promised.adjacency) == (Unit.SENTENCE, Adjacency.ONE_SENTENCE)
    assert promised.epsilon == 5
    whole = promised.for_document(9)
    assert whole.epsilon == 45
    assert whole.adjacency is Adjacency.EQUAL_SENTENCES
    assert "the longest row here, 9 sentences" in release.card().to_text()


def test_the_draw_follows_the_law():
    """Chi-square with a fixed seed; false alarm 1e-4."""
    mechanism = SentenceDepth(epsilon=10, candidates=64, directions=4)
    expected = mechanism.law(LONG)
    drawn = mechanism.draw([LONG] * 800, new_source(11))
    counts = np.bincount(drawn, minlength=64)
    order = np.argsort(expected)
    groups = np.array_split(order, 8)
    observed = [counts[group].sum() for group in groups]
    wanted = [expected[group].sum() * 800 for group in groups]
    assert chisquare(observed, wanted).pvalue > 1e-4


def test_sentences_by_a_public_rule():
    assert sentences_of("  ") == [""]
    assert sentences_of("One here. Two\nthere! three") == ["One here.", "Two there! three"]
    assert math.isclose(SentenceDepth(epsilon=1).promise().slack, rounding_slack(512))
