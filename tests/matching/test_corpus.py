"""The public step: a corpus from a sketch."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.auditing.synthetic.planted import part_of
from tacit.errors import BadInputError
from tacit.matching.corpus import matched_corpus, pool_features, usual_rows
from tacit.matching.discriminant import fitted_discriminant, steadied_counts
from tacit.matching.drawing import DrawnRows, best_first, capped, lifted_shares, rows_per_label
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import load_pool
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import rows_in_memory

POOL = load_pool("general")
PART = part_of(POOL, list(range(0, len(POOL), 25)))
"""Where it does not matter how many sentences there are: the whole pool takes seconds to read."""
TOPICS = {
    "weather": ("rain", "snow", "sunny", "cloudy", "storm", "wind"),
    "food": ("eat", "bread", "soup", "dinner", "cheese", "hungry"),
    "travel": ("train", "airport", "ticket", "hotel", "flight", "station"),
}


def about(word):
    return [sentence for sentence in POOL.sentences if word in sentence.lower().strip(".!?").split()]


@pytest.fixture(scope="module")
def rows():
    """Rows about three topics, and as many again for testing."""
    texts = {label: [text for word in words for text in about(word)] for label, words in TOPICS.items()}
    train = [(text, label) for label, each in texts.items() for text in each[::2]]
    test = [(text, label) for label, each in texts.items() for text in each[1::2]]
    return train, test


@pytest.fixture(scope="module")
def sketch(rows):
    texts, labels = zip(*rows[0], strict=True)
    rule = ListedLabels(tuple(TOPICS))
    return build_sketch(rows_in_memory(texts, labels), rule, default_map(), epsilon=1.0, delta=1e-6, seed=3).sketch


def test_a_classifier_made_of_the_sketch_knows_the_labels(sketch, rows):
    """Chance is 1/3; the seed is fixed, so there are no false alarms."""
    features = pool_features(sketch, POOL.sentences[::10])
    made = fitted_discriminant(sketch, features)
    texts, labels = zip(*rows[1], strict=True)
    guesses = made.log_probabilities(sketch.feature_map.features(texts).dense_values()).argmax(axis=1)
    assert np.mean(np.array(sketch.labels)[guesses] == np.array(labels)) > 0.85


def test_rows_of_a_corpus_speak_of_their_labels(sketch):
    corpus = matched_corpus(sketch, [POOL], rows=600, seed=1)
    assert abs(len(corpus) - 600) <= len(TOPICS)
    assert set(corpus.texts) <= set(POOL.sentences)
    for label, words in TOPICS.items():
        pairs = list(zip(corpus.texts, corpus.labels, strict=True))
        speaks = [(not set(words).isdisjoint(re.findall(r"\w+", text.lower())), other) for text, other in pairs]
        share = np.mean([each for each, other in speaks if other == label])
        assert share > 4 * np.mean([each for each, other in speaks if other != label])


def test_the_seed_of_the_choice_is_public_and_repeats_it(sketch):
    first, again, other = (matched_corpus(sketch, [PART], rows=50, seed=seed) for seed in (4, 4, 5))
    assert first == again
    assert first.texts != other.texts


def test_the_corpus_has_the_promise_of_its_sketch_and_names_its_sentences(sketch):
    corpus = matched_corpus(sketch, [PART], rows=50)
    assert corpus.guarantee.void == sketch.guarantee.void
    assert (corpus.guarantee.notion, corpus.guarantee.unit) == (sketch.guarantee.notion, sketch.guarantee.unit)
    assert any("Tatoeba" in line.source for line in corpus.guarantee.provenance)
    assert "CC BY 2.0 FR" in corpus.attribution


def test_a_pool_that_is_too_small_is_refused(sketch):
    from dataclasses import replace

    small = replace(POOL, sentences=POOL.sentences[:10])
    with pytest.raises(BadInputError) as error:
        matched_corpus(sketch, [small])
    assert error.value.code == "pool-too-small"


def test_numbers_of_rows_are_steadied_only_as_far_as_noise_explains_them(sketch):
    counts, steadied = sketch.counts, steadied_counts(sketch)
    assert np.abs(steadied - counts.mean()).max() <= np.abs(counts - counts.mean()).max()
    assert np.argsort(steadied).tolist() == np.argsort(counts).tolist()
    assert usual_rows(sketch) == 30_000


@given(weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=30), rows=st.integers(1, 100), most=st.integers(1, 3))
def test_no_sentence_is_expected_more_often_than_allowed(weights, rows, most):
    expected = capped(np.array(weights), rows, most)
    assert expected.max() <= most
    assert expected.sum() <= min(rows, most * len(weights)) + 1e-6
    if min(weights) > 1e-3:
        assert expected.sum() == pytest.approx(min(rows, most * len(weights)))


@given(
    shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=20), rows=st.integers(1, 1_000), seed=st.integers(0, 99)
)
def test_rows_per_label_add_up(shares, rows, seed):
    wanted = rows_per_label(np.array(shares), rows, np.random.default_rng(seed))
    exact = np.array(shares) / sum(shares) * rows
    assert abs(wanted.sum() - rows) <= 1
    assert np.abs(wanted - exact).max() <= 1


def test_a_label_of_few_rows_is_neither_pushed_away_by_its_noise_nor_drowns_the_others(rows):
    """40 of 40,000 rows: the mean of their label is mostly noise. A ridge alone pushed such a label away by the square
    of its noise; here its sentences are still likelier under it than others are, and the large labels are known."""
    train, test = rows
    few = [row for row in train if row[1] == "travel"][:40]
    many = [row for row in train if row[1] != "travel"] * 8
    texts, labels = zip(*(many + few), strict=True)
    rule = ListedLabels(tuple(TOPICS))
    sketch = build_sketch(rows_in_memory(texts, labels), rule, default_map(), epsilon=1.0, delta=1e-6, seed=5).sketch
    made = fitted_discriminant(sketch, pool_features(sketch, POOL.sentences[::10]))
    texts, labels = zip(*test, strict=True)
    scores = made.log_probabilities(sketch.feature_map.features(texts).dense_values())
    guesses, truth = np.array(sketch.labels)[scores.argmax(axis=1)], np.array(labels)
    assert np.mean((guesses == truth)[truth != "travel"]) > 0.85
    small = scores[:, list(TOPICS).index("travel")]
    assert small[truth == "travel"].mean() > small[truth != "travel"].mean() + 0.5
    assert small.max() > -12  # the plain ridge left it at -30 and less


def test_no_sentence_is_repeated_while_the_pool_has_enough(sketch):
    corpus = matched_corpus(sketch, [POOL], rows=6_000, seed=1)
    pairs = list(zip(corpus.texts, corpus.labels, strict=True))
    assert len(set(pairs)) == len(pairs)
    many = matched_corpus(sketch, [POOL], rows=60_000, seed=1)
    assert len(many) > 59_000


def test_names_of_labels_help_where_rows_are_few():
    """18 labels of 12 rows at epsilon 1, fixed seeds: their averages are mostly noise, and names tell what they are
    about. Names that say nothing do no harm."""
    words = [word for each in TOPICS.values() for word in each]
    silent = [f"{place}" for place in range(len(words))]
    assert share_right(words, words) > 2 * share_right(words, silent) > 0.06


def share_right(words, names):
    """How many sentences with these words a classifier knows that is made of sketches whose labels have these names."""
    chosen = [(text, name) for word, name in zip(words, names, strict=True) for text in about(word)[:24]]
    private = rows_in_memory([text for text, _ in chosen[::2]], [name for _, name in chosen[::2]])
    texts, truth = zip(*chosen[1::2], strict=True)
    right = []
    for seed in range(3):
        rule = ListedLabels(tuple(names))
        sketch = build_sketch(private, rule, default_map(), epsilon=1.0, delta=1e-4, seed=seed).sketch
        made = fitted_discriminant(sketch, pool_features(sketch, POOL.sentences[::50]))
        guesses = made.log_probabilities(sketch.feature_map.features(texts).dense_values()).argmax(axis=1)
        right.append(np.mean(np.array(names)[guesses] == np.array(truth)))
    return np.mean(right)


def test_any_first_part_of_a_corpus_is_a_smaller_corpus_of_its_best_rows(sketch):
    corpus = matched_corpus(sketch, [PART], rows=3_000, seed=1)
    labels = np.array(corpus.labels)
    for label in sketch.labels:
        assert abs(np.mean(labels[:300] == label) - np.mean(labels == label)) < 0.01


def test_rows_stand_in_the_order_of_their_weights_within_a_label():
    rows = DrawnRows(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), np.array([0.1, 0.4, 0.2, 0.3, 5.0, 6.0]))
    assert best_first(rows).tolist() == [1, 5, 3, 2, 4, 0]


@given(shares=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=60))
def test_lifted_shares_leave_no_label_out_and_keep_the_order(shares):
    given_shares = np.array(shares)
    lifted = lifted_shares(given_shares)
    assert lifted.sum() == pytest.approx(1.0)
    # Lifting all others adds at most a third of the rows, or all thirtieth parts, so the floor shrinks by no more.
    assert lifted.min() >= min(1 / (3 * len(shares)), 1 / 30) / (4 / 3) - 1e-12
    order = np.argsort(given_shares, kind="stable")
    assert (np.diff(lifted[order]) >= -1e-12).all()


def test_equal_shares_are_left_alone():
    assert lifted_shares(np.full(7, 1 / 7)) == pytest.approx(np.full(7, 1 / 7))


def test_rare_labels_get_more_rows_unless_proportions_are_kept(sketch):
    counts = sketch.counts / sketch.counts.sum()
    rarest = sketch.labels[int(counts.argmin())]
    kept = matched_corpus(sketch, [PART], rows=3_000, keep_proportions=True, seed=1)
    assert np.mean(np.array(kept.labels) == rarest) == pytest.approx(counts.min(), abs=0.01)
    few = replace(sketch, totals=_with_few(sketch.totals, sketch.labels.index(rarest)))
    shares = [
        np.mean(np.array(matched_corpus(few, [PART], rows=3_000, keep_proportions=keep, seed=1).labels) == rarest)
        for keep in (True, False)
    ]
    assert shares[0] < 0.01 < 1 / 40 < shares[1]


def _with_few(totals, line):
    """The same sums with a label that has a hundredth of its rows."""
    fewer = totals.copy()
    fewer[line] //= 100
    return fewer


def test_marks_that_only_private_text_has_are_hardly_taken_for_a_label(monkeypatch):
    """Half of the texts have a mark that public sentences lack, those about food a little more often. Fixed seeds."""
    mark, seldom_or_often = " http www com", {"weather": 0.4, "food": 0.6}
    plain = [(text, label) for label in seldom_or_often for word in TOPICS[label] for text in about(word)]
    generator = np.random.default_rng(0)
    marked = [text + mark * (generator.random() < seldom_or_often[label]) for text, label in plain]
    rule = ListedLabels(tuple(seldom_or_often))
    private = rows_in_memory(marked[::2], [label for _, label in plain[::2]])
    sketch = build_sketch(private, rule, default_map(), epsilon=1.0, delta=1e-4, seed=1).sketch
    public = pool_features(sketch, POOL.sentences[::20])

    def changed_by_the_mark():
        made = fitted_discriminant(sketch, public)
        both = [
            made.log_probabilities(sketch.feature_map.features(texts).dense_values()).argmax(axis=1)
            for texts in ([text for text, _ in plain[1::2]], [text + mark for text, _ in plain[1::2]])
        ]
        return np.mean(both[0] != both[1])

    with_more_variance = changed_by_the_mark()
    monkeypatch.setattr("tacit.matching.discriminant.SHIFT", 0.0)
    assert with_more_variance < 0.7 * changed_by_the_mark(), (with_more_variance, changed_by_the_mark())
