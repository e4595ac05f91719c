"""Similarity: hand-computed values, brute force, and both ends of every measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.documents.encoder import SentenceEncoder
from tacit.documents.language_models import PUBLIC_SENTENCES
from tacit.errors import BadInputError, BadParameterError, MissingExtraError
from tacit.evaluation import similarity
from tacit.evaluation.bertscore import bert_scores, idf_weights
from tacit.evaluation.scores import Interval
from tacit.evaluation.similarity import (
    Measure,
    bleu,
    check_metrics,
    chrf,
    kept_anywhere,
    kept_in_place,
    kept_words,
    length,
    measure_similarity,
    perplexity,
    sample,
    share_kept,
    similarity_light,
    similarity_section,
    strangers,
    surprise,
    verbatim_copies,
)
from tacit.evaluation.vectors import TextVectors
from tacit.report import Light
from tests.documents.test_language_models import tiny

TEXTS = [
    "will it rain in the north of the country tomorrow",
    "book a table for four people near the window",
    "play some quiet music by an old jazz band",
    "the soup was excellent but the service was slow",
    "add this song to my playlist for the long drive",
    "how do i change the password of my account",
]


@pytest.fixture(scope="module")
def minilm() -> TextVectors:
    try:
        vectors = TextVectors("minilm")
        vectors(["a"])
    except MissingExtraError as error:
        pytest.skip(str(error))
    return vectors


def test_nobody_meets_their_own_release():
    for count in (2, 3, 50):
        partner = strangers(count)
        assert sorted(partner) == list(range(count))
        assert not (partner == np.arange(count)).any()


def test_verbatim_copies_are_whole_texts_and_no_text_is_a_copy_of_nothing():
    originals = ["Book a table", "play some music", "", "rate it five", "is it cold"]
    releases = ["book  a TABLE", "play some", "", "five it rate", "is it cold now"]
    measured = verbatim_copies(originals, releases)
    assert measured.value == pytest.approx(1 / 5)
    assert measured.per_text.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert measured.floor == 0.0
    assert measured.ceiling == pytest.approx(4 / 5)
    repeated = verbatim_copies(["hello"] * 4, ["hello"] * 4)
    assert repeated.value == repeated.floor == 1.0, "texts that repeat are copies of one another by chance"


def test_share_kept():
    assert share_kept(0.5, 0.2, 0.8) == pytest.approx(0.5)
    assert share_kept(0.1, 0.4, 0.0) == pytest.approx(0.75)  # lower is better
    assert share_kept(10.0, 100.0, 1.0, logarithmic=True) == pytest.approx(0.5)
    assert math.isnan(share_kept(0.5, 0.3, 0.3))


def test_words_by_hand():
    a, b = ["the", "cat", "sat", "on", "the", "mat"], ["the", "dog", "sat", "on", "a", "the"]
    assert kept_in_place(a, b) == pytest.approx(3 / 6)
    assert kept_anywhere(a, b) == pytest.approx(4 / 6)
    assert kept_in_place([], ["x"]) == kept_anywhere([], ["x"]) == 1.0
    assert kept_in_place(["x"], []) == 0.0


def test_both_ends_of_the_measures_without_a_model():
    """The originals themselves reach the ceiling; unrelated texts are near the floor."""
    copies = [bleu(TEXTS, TEXTS), chrf(TEXTS, TEXTS), *kept_words(TEXTS, TEXTS), length(TEXTS, TEXTS)]
    for measure in copies:
        assert measure.kept == pytest.approx(1.0), measure.name
        assert measure.value == pytest.approx(measure.ceiling)
    others = list(PUBLIC_SENTENCES[: len(TEXTS)])
    for measure in (bleu(TEXTS, others), chrf(TEXTS, others), *kept_words(TEXTS, others)):
        assert abs(measure.kept) < 0.15, measure.name


def test_bleu_is_sacrebleus_and_says_how():
    sacrebleu = pytest.importorskip("sacrebleu")
    changed = [text.replace("the", "a") for text in TEXTS]
    measured = bleu(TEXTS, changed)
    assert measured.value == pytest.approx(sacrebleu.corpus_bleu(changed, [TEXTS], lowercase=True).score)
    assert "case:lc" in measured.note
    assert "version:" in measured.note
    assert measured.interval.low <= measured.value <= measured.interval.high
    assert bleu(TEXTS, [text.upper() for text in TEXTS]).value == pytest.approx(100)


def brute_force(x, y, wx, wy):
    similar = x @ y.T
    recall = (similar.max(axis=1) * wx).sum() / wx.sum()
    precision = (similar.max(axis=0) * wy).sum() / wy.sum()
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("idf", [False, True])
def test_greedy_matching_is_brute_force(idf):
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)

    def text(count):
        vectors = np.abs(rng.standard_normal((count, 6))).astype(np.float32)
        return rng.integers(0, 9, count).tolist(), vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    references, candidates = [text(n) for n in (3, 7, 1, 5)], [text(n) for n in (4, 2, 6, 5)]
    weights = idf_weights([ids for ids, _ in references]) if idf else None
    scores = bert_scores(references, candidates, weights)
    for i, ((ids, x), (other, y)) in enumerate(zip(references, candidates, strict=True)):
        wx, wy = (np.array([1.0 if weights is None else weights.get(j, weights[-1]) for j in k]) for k in (ids, other))
        expected = brute_force(x, y, wx, wy)
        assert (scores.precision[i], scores.recall[i], scores.f1[i]) == pytest.approx(expected, abs=1e-5)


def test_empty_texts_match_empty_texts_only():
    pytest.importorskip("torch")
    empty = ([], np.zeros((0, 4), dtype=np.float32))
    word = ([1], np.array([[1, 0, 0, 0]], dtype=np.float32))
    assert bert_scores([empty, empty, word], [empty, word, empty]).f1.tolist() == [1.0, 0.0, 0.0]


def test_idf_is_that_of_the_published_code():
    weights = idf_weights([[1, 2, 2], [1, 3]])
    assert weights[1] == pytest.approx(math.log(3 / 3))
    assert weights[2] == pytest.approx(math.log(3 / 2))
    assert weights[-1] == pytest.approx(math.log(3))


def test_both_ends_with_a_real_encoder(minilm):
    near = [text.replace("the", "a").replace("some", "any") for text in TEXTS]
    measures = measure_similarity(TEXTS, near, ("cosine", "bertscore"), vectors=minilm)
    for name in ("cosine", "BERTScore"):
        assert measures[name].floor < 0.5 < measures[name].value < 1.0
        assert measures[name].ceiling == pytest.approx(1.0, abs=1e-3)
        assert measures[name].kept > 0.6
    same = measure_similarity(TEXTS, TEXTS, ("cosine", "bertscore"), vectors=minilm)
    assert all(measure.kept == pytest.approx(1.0, abs=1e-3) for measure in same.measures)
    nothing = measure_similarity(TEXTS, ["the"] * len(TEXTS), ("cosine", "bertscore"), vectors=minilm)
    assert all(measure.kept == pytest.approx(0.0, abs=1e-6) for measure in nothing.measures)
    assert similarity_section(nothing).findings[0].light is Light.RED
    assert similarity_section(same).findings[0].light is Light.GREEN


def test_bertscore_does_not_depend_on_the_batch(minilm):
    assert isinstance(minilm.encoder, SentenceEncoder)
    other = TEXTS[::-1]
    together = similarity.bertscore(TEXTS, other, minilm.encoder).per_text
    alone = similarity.bertscore(TEXTS[:2], other[:2], minilm.encoder).per_text
    assert np.allclose(together[:2], alone, atol=2e-3)


def test_surprise_is_that_of_the_model_without_padding():
    torch = pytest.importorskip("torch")
    model = tiny("llama")
    texts = ["the rain", "", "a much longer text about the rain in the north"]
    surprises = surprise(texts, model)
    first = list(model.special_frame().before) or [model.end if model.end is not None else model.pad]
    for text, (total, count) in zip(texts, surprises, strict=True):
        ids = torch.tensor([[*first, *model.tokens(text, 64)]])
        assert count == ids.shape[1] - len(first)
        if count:
            with torch.inference_mode():
                log = model.model(input_ids=ids).logits[0].log_softmax(-1)
            expected = -sum(float(log[i - 1, ids[0, i]]) for i in range(len(first), ids.shape[1]))
            assert total == pytest.approx(expected, rel=1e-4)
    measure = perplexity(TEXTS, TEXTS, model)
    assert measure.value == measure.ceiling
    assert measure.per_text.shape == (len(TEXTS),)
    with pytest.raises(BadInputError, match="causal"):
        perplexity(TEXTS, TEXTS, tiny("t5"))


def test_the_light_follows_the_gap_and_the_interval():
    def measure(value, low, floor=0.2):
        return Measure("cosine", Interval(value, low, value + 0.1, 9), floor, 1.0, 9)

    assert similarity_light(measure(0.7, 0.6)) is Light.GREEN
    assert similarity_light(measure(0.4, 0.3)) is Light.AMBER
    assert similarity_light(measure(0.4, 0.15)) is Light.RED
    assert similarity_light(measure(0.22, 0.21)) is Light.RED


def test_bad_input_says_what_to_do():
    with pytest.raises(BadInputError, match="row 3 has no partner"):
        bleu(["a", "b", "c"], ["a", "b"])
    with pytest.raises(BadInputError, match="at least two"):
        bleu(["a"], ["a"])
    with pytest.raises(BadParameterError, match="no metric 'rouge'"):
        check_metrics(["rouge"])
    assert check_metrics(["all"]) == similarity.METRICS
    assert check_metrics(["none"]) == ()


def test_samples_are_fixed_and_the_quoted_rows_are_those_of_the_file(minilm):
    assert sample(5, None).tolist() == [0, 1, 2, 3, 4]
    assert sample(1000, 10).tolist() == sample(1000, 10).tolist()
    releases = [text.upper() for text in TEXTS]
    measures = measure_similarity(TEXTS, releases, ("cosine",), vectors=minilm, limit=4)
    table = similarity_section(measures).tables[-1]
    assert table.private
    assert len(table.rows) == 4
    for row, _, original, released in table.rows:
        assert TEXTS[row - 1] == original
        assert released == original.upper()
