"""What reaches the output: nothing of the original beside the mechanism, in every container, seeded or not."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import tacit
from tacit.catalog import build, mechanism_names
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.noise.source import Source
from tacit.vectors import VectorTable
from tests.conftest import small_table

WORDS = ["the", "good", "bad", "film", "nurse", "doctor", ".", ",", "n't", "do", "was", "river", "lake", "1987"]


@pytest.fixture(scope="module")
def table() -> VectorTable:
    vectors = np.random.default_rng(0).standard_normal((len(WORDS), 4)).astype(np.float32)
    return VectorTable(WORDS, vectors, name="tiny", source="test")


def every_mechanism(table, **options):
    for name in mechanism_names("word"):
        more = {"mode": "real-part"} if name == "truncated-gumbel" else {}
        more |= {"sensitive_share": 0.6} if name in ("santext+", "two-budgets") else {}
        yield tacit.build(name, {"epsilon": 2.0, "vectors": table, **more, **options})


@pytest.fixture(scope="module")
def mechanisms():
    return list(every_mechanism(small_table(12, 3), joining="spaces"))


@settings(max_examples=60)
@given(texts=st.lists(st.text(max_size=40), max_size=4))
def test_only_vocabulary_words_come_out_whatever_goes_in(mechanisms, texts):
    for mechanism in mechanisms:
        release = mechanism.rewrite(texts)
        assert len(release.texts) == len(texts)
        for text, units in zip(release.texts, release.units, strict=True):
            tokens = text.split(" ") if text else []
            assert set(tokens) <= set(mechanism.vocabulary)
            assert len(tokens) == units


def test_unknown_words_case_and_layout_never_come_through(table):
    secret = "  Mx. Zyx-Quolth\tSAW\n\n the   Nurse, 5,550,199 times "
    for mechanism in every_mechanism(table):
        for _ in range(20):
            (text,) = mechanism.rewrite(secret).texts
            assert text == text.lower().strip()
            assert "\n" not in text
            assert "\t" not in text
            for piece in ("zyx", "quolth", "saw", "times", "550", "mx"):
                assert piece not in text


def test_punctuation_rules(table):
    text = "the film, was good."
    for rule, count in (("rewrite", 6), ("drop", 4)):
        release = tacit.SanText(epsilon=1, vectors=table, punctuation=rule).rewrite(text)
        assert release.units == [count]
    kept = tacit.SanText(epsilon=1, vectors=table, punctuation="keep", joining="spaces")
    tokens = kept.rewrite(text).texts[0].split(" ")
    assert (tokens[2], tokens[5]) == (",", ".")
    assert any("punctuation" in item for item in kept.guarantee().not_covered)
    # Marks outside the public list are rewritten even then.
    assert "☂" not in kept.rewrite("the ☂ film").texts[0]


def test_a_test_seed_repeats_and_voids_the_guarantee(table):
    texts = ["the nurse was good", "the doctor was bad"] * 20
    for mechanism in every_mechanism(table, seed=7):
        first, second = mechanism.rewrite(texts), mechanism.rewrite(texts)
        assert first.texts == second.texts
        assert not first.guarantee.is_private
        assert "test seed" in first.guarantee.void
        fresh = clone(mechanism).set_params(seed=None)
        assert fresh.rewrite(texts).guarantee.void != first.guarantee.void


def test_two_releases_draw_different_noise(table):
    texts = ["the nurse was good . the doctor was bad"] * 50
    for mechanism in every_mechanism(table):
        if mechanism.name != "brr":  # 64 bits at epsilon 2 decode to the same word nearly always
            assert mechanism.rewrite(texts).texts != mechanism.rewrite(texts).texts, mechanism.name


def test_empty_texts_stay_empty(table):
    for mechanism in every_mechanism(table):
        assert mechanism.rewrite(["", "  \n "]).texts == ["", ""]
        assert mechanism.rewrite([]).texts == []


def test_containers_keep_their_kind(table):
    mechanism = tacit.SanText(epsilon=3, vectors=table)
    texts = ["the film", "was good"]
    series = pd.Series(texts, index=[4, 2], name="review")
    out = mechanism.transform(series)
    assert isinstance(out, pd.Series)
    assert list(out.index) == [4, 2]
    assert out.name == "review"
    assert isinstance(mechanism.transform(np.array(texts)), np.ndarray)
    assert isinstance(mechanism.transform(pa.array(texts)), pa.Array)
    assert mechanism.transform(pa.array(texts, type=pa.large_string())).type == pa.large_string()
    assert isinstance(mechanism.transform(pa.chunked_array([texts, texts])), pa.ChunkedArray)
    assert isinstance(mechanism.transform(texts), list)
    assert isinstance(mechanism.transform("the film"), str)
    labels = mechanism.transform(pd.Series(texts, dtype="category"))
    assert labels.notna().all()


def test_it_works_in_a_pipeline_and_learns_nothing_from_the_text(table):
    mechanism = tacit.SanText(epsilon=1e4, vectors=table)
    model = make_pipeline(mechanism, CountVectorizer(), LogisticRegression())
    texts = ["good film", "bad film", "good river", "bad lake"] * 5
    labels = [1, 0, 1, 0] * 5
    assert model.fit(texts, labels).score(texts, labels) == 1.0
    law = mechanism.distribution("good")
    mechanism.fit(["entirely other text"] * 100)
    np.testing.assert_array_equal(mechanism.distribution("good"), law)


def test_parameters_follow_scikit_learn(table):
    mechanism = tacit.SanTextPlus(epsilon=2, vectors=table, p=0.4)
    copy = clone(mechanism)
    assert copy is not mechanism
    assert copy.get_params() == mechanism.get_params()
    assert copy.set_params(p=0.9).p == 0.9
    with pytest.raises(BadParameterError, match="no parameter 'q'"):
        copy.set_params(q=1)
    with pytest.raises(BadParameterError):
        copy.set_params(epsilon=-1)


def test_changing_a_parameter_is_never_answered_with_an_old_law(table):
    mechanism = tacit.SanText(epsilon=1.0, vectors=table)
    before = mechanism.distribution("good").max()
    mechanism.set_params(epsilon=50.0)
    assert mechanism.distribution("good").max() > before
    assert mechanism.guarantee().epsilon == 50.0
    mechanism.vectors = small_table(9, 2)
    assert mechanism.distribution("good").shape == (9,)


@pytest.mark.parametrize("bad", [[1, 2], [None], [b"bytes"], [["nested"]]])
def test_items_that_are_not_texts_are_named(bad, table):
    with pytest.raises(BadInputError, match="item 0 is a"):
        tacit.SanText(epsilon=1, vectors=table).rewrite(bad)


def test_tables_are_refused_with_advice(table):
    with pytest.raises(BadInputError, match="select the column"):
        tacit.SanText(epsilon=1, vectors=table).rewrite(pd.DataFrame({"text": ["a"]}))


def test_a_detector_marks_tokens_as_sensitive(table):
    common = {
        "epsilon": 2.0,
        "vectors": table,
        "sensitive_list": None,
        "sensitive_share": 0.5,
        "p": 1e-9,
        "joining": "spaces",
    }
    plain = tacit.SanTextPlus(**common)
    marking = tacit.SanTextPlus(**common, detector="patterns")
    word = next(w for w, s in zip(WORDS, plain.sensitive, strict=True) if not s and w.isalpha())
    text = f"dr {word}"
    assert plain.rewrite(text).texts[0].split(" ")[1] == word, "a common word stays"
    for _ in range(30):
        assert marking.rewrite(text).texts[0].split(" ")[1] != word, "the word after a title never does"
    assert any("detector" in item for item in marking.guarantee().not_covered)
    dropping = tacit.SanTextPlus(**common, detector="patterns", punctuation="drop")
    assert dropping.rewrite(f"the , dr {word} .").units == [3]


def test_draws_of_one_call_do_not_repeat(table):
    """The same word 2,000 times: the draws of the two halves agree as often as chance, not more (rate 1e-9)."""
    for mechanism in every_mechanism(small_table(40, 3)):
        drawn = mechanism.draw(np.zeros(4000, dtype=np.int64), Source.from_os())
        share = np.bincount(drawn, minlength=40) / 4000
        chance = (share**2).sum()
        if chance < 0.9:
            agreement = (drawn[:2000] == drawn[2000:]).mean()
            assert abs(agreement - chance) < 6.2 * np.sqrt(chance / 2000), mechanism.name


def test_a_saved_mechanism_holds_no_word_of_the_texts(table):
    for mechanism in every_mechanism(table):
        mechanism.rewrite("my neighbor Zbigniewska-Okonkwo has code qx77zk19")
        saved = pickle.dumps(mechanism)
        assert b"zbigniewska" not in saved.lower()
        assert b"qx77" not in saved.lower()
        assert pickle.loads(saved).get_params().keys() == mechanism.get_params().keys()


def test_a_seeded_mechanism_never_hands_out_a_guarantee(table):
    for mechanism in every_mechanism(table, seed=7):
        assert not mechanism.guarantee().is_private


def test_a_refused_parameter_leaves_the_mechanism_as_it_was(table):
    mechanism = tacit.CusText(epsilon=2.0, vectors=table, set_size=5)
    for change in ({"set_size": 1}, {"epsilon": 1e9}):
        with pytest.raises(BadParameterError):
            mechanism.set_params(**change)
        with pytest.raises(BadParameterError):
            setattr(mechanism, *next(iter(change.items())))
    assert (mechanism.epsilon, mechanism.set_size) == (2.0, 5)
    both = tacit.TwoBudgets(epsilon=2.0, common_epsilon=4.0, vectors=table)
    assert both.set_params(epsilon=10.0, common_epsilon=20.0).common_epsilon == 20.0


def test_promises_about_different_sets_do_not_add_up(table, tmp_path):
    def listed(*words):
        path = tmp_path / f"{words[0]}.txt"
        path.write_text("\n".join(words))
        return tacit.SanTextPlus(epsilon=1, vectors=table, sensitive_share=0.0, sensitive_list=str(path)).guarantee()

    pairs = [
        (tacit.CusText(epsilon=1, vectors=table, set_size=k).guarantee() for k in (3, 5)),
        (listed("river", "lake"), listed("nurse", "doctor")),
        (tacit.SanText(epsilon=1, vectors=points).guarantee() for points in (table, small_table(14, 4))),
    ]
    for left, right in pairs:
        with pytest.raises(NoGuaranteeError, match="different"):
            left.then(right)
    twice = tacit.CusText(epsilon=1, vectors=table, set_size=3)
    assert twice.guarantee().then(twice.guarantee()).epsilon == 2


def test_the_card_names_no_folder(table, tmp_path):
    path = tmp_path / "secret-project" / "words.txt"
    path.parent.mkdir()
    path.write_text("river\nlake")
    mechanism = tacit.SanTextPlus(
        epsilon=1, vectors=table, sensitive_list=str(path), sensitive_share=0.0, detector="patterns"
    )
    assert "secret-project" not in tacit.Card(mechanism.guarantee()).to_json()


def test_numeric_slack_is_on_the_card():
    """Each part of the arithmetic that the proof counts: distances of the exponential family, rounded spaces."""
    small, large = small_table(20, 4), small_table(20, 4, scale=1e6)
    for name in ("santext", "tem", "santext+", "two-budgets"):
        options = {"sensitive_share": 1.0} if name in ("santext+", "two-budgets") else {}
        a, b = (tacit.build(name, {"epsilon": 2, "vectors": points, **options}) for points in (small, large))
        assert a.guarantee().slack < 1e-4
        assert b.guarantee().slack == pytest.approx(8 * b.guarantee().epsilon * b.distances.error_bound, rel=0.1)
        b.set_params(calibration="textbook")
        assert b.guarantee().slack == pytest.approx(2 * b.guarantee().epsilon * b.distances.error_bound, rel=0.1)
    for options in ({"name": "mahalanobis"}, {"name": "laplace", "bounding": "unit"}):
        mechanism = tacit.build(options.pop("name"), {"epsilon": 2, "vectors": large, **options})
        assert mechanism.guarantee().slack == pytest.approx(2 * mechanism.noise_epsilon * mechanism.rounding)
        assert mechanism.rounding > 0
    assert tacit.build("laplace", {"epsilon": 2, "vectors": large}).guarantee().slack == 0


def test_capitals_in_the_vocabulary_are_found():
    table = VectorTable(["Paris", "apple", "Apple"], np.eye(3, dtype=np.float32), name="cased", source="test")
    lexicon = tacit.SanText(epsilon=1, vectors=table).lexicon
    assert lexicon.ids(["paris", "apple"]) == [0, 1]


def test_parameters_change_as_a_whole_and_take_what_was_derived_with_them():
    mechanism = build("tem", {"epsilon": 2.0, "vectors": small_table()})
    before = mechanism.guarantee()
    mechanism.remembered = "worked out from the old parameters"
    with pytest.raises(BadParameterError):
        mechanism.set_params(epsilon=3.0, beta=2.0)
    assert (mechanism.epsilon, mechanism.remembered) == (2.0, "worked out from the old parameters")
    assert mechanism.guarantee() == before
    mechanism.epsilon = 3.0
    assert not hasattr(mechanism, "remembered")
    assert mechanism.guarantee().epsilon == 3.0
    with pytest.raises(BadParameterError) as refused:
        mechanism.joining = "glue"
    assert (refused.value.code, refused.value.fields["name"]) == ("not-a-choice", "joining")
    assert mechanism.get_params()["joining"] == "natural"
