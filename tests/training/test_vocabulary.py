"""Private vocabularies: the threshold by exact integration, sensitivity, both ends, tokenizers, what they cost."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import norm

from tacit.account.delta import automatic_delta
from tacit.auditing.binomial import at_least
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Adjacency, Notion, Unit
from tacit.noise.gaussian import gaussian_delta
from tacit.noise.source import Source
from tacit.training.plan import TrainingPlan
from tacit.training.vocabulary import (
    Contribution,
    WordNoise,
    build_tokenizer,
    calibrate,
    combined,
    load_vocabulary,
    private_histogram,
    save_vocabulary,
    thresholded_delta,
    vocabulary_guarantee,
)
from tacit.training.vocabulary.histogram import WordHistogram, count_words, units_of, words_of

COMMON = ["the", "movie", "was", "good", "and", "the", "plot", "was", "fine"]


def texts(count=400):
    return [" ".join(COMMON[i % 3 :]) for i in range(count)]


# The threshold ------------------------------------------------------------------------------------------------------


def integrated_delta(epsilon, sigma, threshold, *, shared_count):
    """The largest delta between a data set and the same with one record of two words more, one of which no other record
    holds; by integration over the noisy count of the other word, in both directions, without any formula for it."""
    alone = norm.sf(threshold, loc=1.0, scale=sigma)  # the word of its own is shown

    def densities(x):
        return norm.pdf(x, shared_count + 1, sigma), norm.pdf(x, shared_count, sigma)

    def excess(with_record, without):
        return max(0.0, with_record - math.exp(epsilon) * without)

    low, high = shared_count - 12 * sigma, shared_count + 12 * sigma
    # Shown counts of the shared word are continuous outputs; "not shown" is one more output.
    seen = [
        integrate.quad(lambda x: excess((1 - alone) * densities(x)[0], densities(x)[1]), max(low, threshold), high),
        integrate.quad(lambda x: excess(densities(x)[1], (1 - alone) * densities(x)[0]), max(low, threshold), high),
    ]
    hidden = norm.cdf(threshold, shared_count + 1, sigma), norm.cdf(threshold, shared_count, sigma)
    with_record = seen[0][0] + excess((1 - alone) * hidden[0], hidden[1]) + alone
    without = seen[1][0] + excess(hidden[1], (1 - alone) * hidden[0])
    return max(with_record, without)


@pytest.mark.parametrize(("epsilon", "sigma", "threshold"), [(1.0, 1.2, 4.0), (0.3, 3.0, 9.0), (2.0, 0.7, 2.5)])
def test_the_formula_bounds_the_true_delta_and_is_reached(epsilon, sigma, threshold):
    claimed = thresholded_delta(epsilon, sigma, threshold, Contribution(2, "one"))
    # With a shared word that is nearly always shown, cutting off hides nothing: the formula is exact for its u = 1.
    far = integrated_delta(epsilon, sigma, threshold, shared_count=threshold + 40 * sigma)
    near = integrated_delta(epsilon, sigma, threshold, shared_count=1)
    assert near <= far * (1 + 1e-6)
    p = norm.cdf((threshold - 1) / sigma)
    by_formula = max(
        (1 - p) + p * gaussian_delta(epsilon - math.log(p), sigma, 1.0),
        gaussian_delta(epsilon + math.log(p), sigma, 1.0),
    )
    assert far == pytest.approx(by_formula, rel=1e-4)
    assert far <= claimed * (1 + 1e-9)
    # All cases: no word of its own, one, or two.
    p2 = p**2
    others = [gaussian_delta(epsilon, sigma, math.sqrt(2)), 1 - p2]
    assert claimed == pytest.approx(max(by_formula, *others), rel=1e-6)


@pytest.mark.parametrize("weighting", ["one", "shared"])
@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
def test_calibrated_noise_keeps_delta_and_wastes_little(weighting, adjacency):
    bounded = Contribution(12, weighting)
    noise = calibrate(epsilon=1.0, delta=1e-6, contribution=bounded, adjacency=adjacency)
    kept = thresholded_delta(1.0, noise.scale, noise.threshold, bounded, adjacency)
    assert 0.99e-6 < kept <= 1e-6
    assert thresholded_delta(1.0, noise.scale, 0.98 * noise.threshold, bounded, adjacency) > 1e-6
    assert thresholded_delta(0.9, noise.scale, noise.threshold, bounded, adjacency) > 1e-6


def test_without_a_threshold_there_is_no_promise():
    """The known wrong histogram: noise alone, all words that occur are shown."""
    sigma = calibrate(epsilon=1.0, delta=1e-6, contribution=Contribution(1, "one"), public_words=True).scale
    assert thresholded_delta(1.0, sigma, -1e9, Contribution(1, "one")) == pytest.approx(1.0)
    wrong = WordNoise("gaussian", sigma, None, 1.0, 1e-6)
    shown, _ = wrong.released(["the", "xylograph"], np.array([50.0, 1.0]), Source.from_test_seed(1))
    assert "xylograph" in shown, "one record alone is seen in every release"


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_word_of_one_record_comes_out_with_at_most_delta(kind):
    """Sampled with a large delta. False alarm: 1e-6."""
    delta, trials = 0.01, 20_000
    bounded = Contribution(1, "one")
    noise = calibrate(epsilon=1.0, delta=delta, contribution=bounded, kind=kind)
    _, counts = WordNoise(kind, noise.scale, None, 1.0, delta).released(
        [str(i) for i in range(trials)], np.ones(trials), Source.from_test_seed(2)
    )
    passed = int((counts >= noise.threshold).sum())
    assert float(at_least(passed, trials, 1e-6)) <= delta
    assert passed > 0.5 * delta * trials, "the threshold is not far higher than it has to be"


def test_laplace_on_a_public_list_is_pure():
    noise = calibrate(epsilon=0.5, delta=1e-6, contribution=Contribution(10, "one"), kind="laplace", public_words=True)
    assert (noise.delta, noise.threshold) == (0.0, None)
    assert noise.scale == pytest.approx(20.0, rel=1e-6)
    assert noise.scale >= 20.0
    made = private_histogram(texts(), epsilon=0.5, kind="laplace", public_words=["the", "movie", "zebra", "The"])
    assert sorted(made.words) == ["movie", "the", "zebra"], "a word that nobody used is shown too"
    assert made.guarantee.notion is Notion.PURE


# Contributions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["one", "shared"])
def test_one_record_moves_the_counts_by_no_more_than_the_sensitivity(weighting):
    bounded = Contribution(5, weighting)
    generator = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(30)])
    units = [list(generator.choice(words, size)) for size in generator.integers(0, 40, 60)]
    whole = count_words(units, bounded)
    for i in range(len(units)):
        rest = count_words(units[:i] + units[i + 1 :], bounded)
        moved = np.array([whole[word] - rest.get(word, 0.0) for word in whole])
        assert np.linalg.norm(moved) <= bounded.l2_sensitivity(Adjacency.ADD_REMOVE) * (1 + 1e-12)
        if weighting == "one":
            assert np.abs(moved).sum() <= bounded.l1_sensitivity(Adjacency.ADD_REMOVE)


def test_which_words_count_depends_on_the_record_alone():
    bounded = Contribution(3, "one")
    record = [f"w{i}" for i in range(20)]
    assert bounded.chosen(record) == bounded.chosen(list(record))
    picked = Counter(word for shift in range(300) for word in bounded.chosen([f"r{shift}", *record]))
    assert len(picked & Counter(record)) == 20, "no word is preferred by its place"


def test_the_rows_of_a_user_count_once():
    many = ["secret"] * 50
    of_records = count_words(units_of(many, None, None, lowercase=True), Contribution(5, "one"))
    of_user = count_words(units_of(many, ["ann"] * 50, None, lowercase=True), Contribution(5, "one"))
    assert (of_records["secret"], of_user["secret"]) == (50.0, 1.0)
    spaced = count_words(units_of(many[:2], ["ann", " ann "], None, lowercase=True), Contribution(5, "one"))
    assert spaced["secret"] == 1.0, "white space makes no second user"
    with pytest.raises(BadInputError, match="row 2 has no user"):
        list(units_of(["a", "b"], ["ann", " "], None, lowercase=True))


def test_words_are_cut_by_one_public_rule():
    assert words_of("Don't PANIC_42!") == ["don", "'", "t", "panic", "_", "42", "!"]
    assert words_of("Ümläut", lowercase=False) == ["Ümläut"]


# The release --------------------------------------------------------------------------------------------------------


def test_both_ends_of_the_budget():
    private = [*texts(), *["patient zebra 4711"]]
    loose = private_histogram(private, epsilon=200.0, contribution=Contribution(8, "one"), seed=1)
    assert set(COMMON) <= set(loose.words)
    assert loose.counts[loose.words.index("good")] == pytest.approx(400, abs=5)
    assert "4711" not in loose.words, "a word of one record stays hidden whatever epsilon is"
    tight = private_histogram(private, epsilon=0.001, contribution=Contribution(8, "one"), seed=1)
    assert len(tight) == 0


def test_the_guarantee_names_unit_and_numbers():
    few = Contribution(9, "one")
    made = private_histogram(texts(), epsilon=1.0, contribution=few)
    assert made.guarantee.unit is Unit.RECORD
    assert (made.guarantee.epsilon, made.guarantee.notion) == (1.0, Notion.APPROXIMATE)
    assert made.guarantee.delta + automatic_delta(400) < 1 / 400, "room for a training run"
    of_users = private_histogram(texts(), epsilon=1.0, users=[f"u{i // 2}" for i in range(400)], contribution=few)
    assert of_users.guarantee.unit is Unit.USER
    assert private_histogram(texts(), epsilon=1.0, seed=3, contribution=few).guarantee.notion is Notion.NONE


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"epsilon": 0.0}, "positive"),
        ({"epsilon": 1.0, "delta": 0.5}, "not below one over"),
        ({"epsilon": 1.0, "kind": "uniform"}, "no noise"),
        ({"epsilon": 1.0, "kind": "laplace", "contribution": Contribution(5, "shared")}, "weighting 'one'"),
    ],
)
def test_what_cannot_be_promised_is_refused(more, message):
    with pytest.raises(BadParameterError, match=message):
        private_histogram(texts(), **more)


# Tokenizers ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def histogram():
    return private_histogram(texts(), epsilon=50.0, contribution=Contribution(8, "one"), seed=4)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_tokenizer_knows_the_words_and_loads_with_transformers(kind, histogram, tmp_path):
    transformers = pytest.importorskip("transformers")
    made = build_tokenizer(histogram, kind=kind, size=400)
    assert len(made) <= 400
    save_vocabulary(tmp_path / "v", histogram, made)
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "v")
    ids = loaded("The movie was GOOD")["input_ids"]
    assert loaded.decode(ids, skip_special_tokens=True).strip() == "the movie was good"
    marks = 0 if kind == "bpe" else 2
    assert len(ids) == 4 + marks, "each released word is one piece"
    strange = loaded("zq-7?", add_special_tokens=False)["input_ids"]
    assert loaded.unk_token_id not in strange, "ordinary characters are never unknown"
    assert loaded.pad_token_id is not None
    again = load_vocabulary(tmp_path / "v")
    assert again.words == histogram.words
    assert again.guarantee == histogram.guarantee
    with pytest.raises(BadInputError, match="exists already"):
        save_vocabulary(tmp_path / "v", histogram, made)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_tokenizer_with_less_room_than_letters_holds_marks_and_letters(kind, histogram):
    """16 pieces: the library's unigram trainer would end in an error, after the budget was spent."""
    pytest.importorskip("transformers")
    made = build_tokenizer(histogram, kind=kind, size=16)
    assert len(made) < 270
    ids = made("zq-7? good", add_special_tokens=False)["input_ids"]
    assert made.unk_token_id not in ids
    assert len(ids) > 6, "no room for whole words"
    strange = WordHistogram(["ﬁne", "straße", "ﷺ"], np.array([9.0, 5.0, 4.0]), histogram.guarantee)
    assert len(build_tokenizer(strange, kind=kind, size=16)) < 300


def test_a_tokenizer_sees_released_words_and_nothing_else(tmp_path):
    pytest.importorskip("transformers")
    private = [*texts(), "qwertzuiop"]
    made = private_histogram(private, epsilon=50.0, contribution=Contribution(8, "one"))
    tokenizer = build_tokenizer(made, kind="wordpiece", size=1000)
    pieces = {piece.removeprefix("##") for piece in tokenizer.get_vocab()}
    assert not any(len(piece) > 1 and piece in "qwertzuiop" for piece in pieces)


def test_a_histogram_without_words_makes_no_tokenizer():
    empty = private_histogram(texts(), epsilon=0.001, seed=1)
    with pytest.raises(BadInputError, match="no word is frequent enough"):
        build_tokenizer(empty)


# What it adds up to -------------------------------------------------------------------------------------------------


def training_guarantee():
    plan = TrainingPlan(records=400, batch=50, steps=20, multiplier=2.0, delta=1e-4)
    return plan.guarantee(steps=20, secure=True, what="DP-ADAMW", parameters={})


def test_training_and_vocabulary_add_up(tmp_path):
    made = private_histogram(texts(), epsilon=1.0, delta=1e-4, contribution=Contribution(9, "one"))
    training = training_guarantee()
    total = combined(made.guarantee, training)
    assert total.epsilon == pytest.approx(training.epsilon + 1.0)
    assert total.delta == pytest.approx(2e-4)
    assert combined(None, training) is training
    assert vocabulary_guarantee("no-such-folder", None) is None
    save_vocabulary(tmp_path / "v", made)
    assert vocabulary_guarantee(None, tmp_path / "v") == made.guarantee


def test_promises_about_different_units_do_not_add_up():
    few, users = Contribution(9, "one"), [f"u{i // 2}" for i in range(400)]
    of_users = private_histogram(texts(), epsilon=1.0, users=users, contribution=few)
    with pytest.raises(NoGuaranteeError, match="unit"):
        combined(of_users.guarantee, training_guarantee())
    seeded = private_histogram(texts(), epsilon=1.0, seed=1, contribution=few)
    assert combined(seeded.guarantee, training_guarantee()).notion is Notion.NONE


# Real text ----------------------------------------------------------------------------------------------------------


def test_frequent_words_of_real_text_are_found(data_folder):
    import gzip

    with gzip.open(data_folder / "sst2" / "train.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        sentences = [line.split("\t")[0] for _, line in zip(range(20_000), lines, strict=False)]
    made = private_histogram(sentences, epsilon=3.0, seed=5)
    truth = Counter(word for sentence in sentences for word in set(words_of(sentence)))
    top = [word for word, _ in truth.most_common(200)]
    assert len(set(top) & set(made.words)) >= 195
    rare = {word for word, count in truth.items() if count <= 2}
    assert not rare & set(made.words)
